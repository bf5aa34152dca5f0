package page

import (
	"cmp"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// maxKeys is the maximum number of the trials' numbers that a page shows.
const maxKeys = 8

// Sweep holds a sweep's trials, which its page shows instead of tasks.
type Sweep struct {
	// Names are the names of the parameters.
	Names []string
	// Trials holds all trials, in the order of their numbers. It is nil while they are unknown.
	Trials []starter.Trial
	// Missing counts the trials with a result that is still unknown.
	Missing int
	// Order sorts the trials. Without a key, the trials that matter are first.
	Order sweep.Order
}

// Trial is a trial's row.
type Trial struct {
	*starter.Trial
	Tone Tone
}

// rows returns the trials with their tones.
func (s *Sweep) rows() []Trial {
	rows := make([]Trial, len(s.Trials))
	for i := range rows {
		t := &s.Trials[i]
		rows[i] = Trial{t, Muted} // cancelled and skipped ones
		switch {
		case t.State == sweep.Failed.String():
			rows[i].Tone = Bad
		case len(t.Silent) > 0:
			rows[i].Tone = Warning
		case t.State == sweep.Running.String():
			rows[i].Tone = Active
		case t.State == sweep.Pending.String():
			rows[i].Tone = Waits
		case t.State == sweep.Succeeded.String():
			rows[i].Tone = Good
		}
	}
	return rows
}

// Keys returns the numbers' keys.
func (s *Sweep) Keys() (keys []string) {
	seen := map[string]bool{}
	for i := range s.Trials {
		for _, key := range s.Trials[i].Keys() {
			if !seen[key] {
				seen[key], keys = true, append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return keys[:min(len(keys), maxKeys)]
}

// best returns the trials with a number, best first, without failed ones.
func (s *Sweep) best(by sweep.Order) (best []Trial) {
	rows := s.rows()
	for _, i := range starter.BestTrials(s.Trials, by) {
		best = append(best, rows[i])
	}
	return best
}

// Best is the trial with the lowest or highest number for a key.
type Best struct {
	Key, Which, Value string
	Trial             Trial
	// URL sorts the trials by that number.
	URL     string
	Current bool
}

// Best returns the best trials by each number, because which one is best is unknown.
func (p *RunPage) Best() (best []Best) {
	for _, key := range p.Sweep.Keys() {
		for _, by := range []sweep.Order{{Key: key}, {Key: key, Max: true}} {
			trials := p.Sweep.best(by)
			if len(trials) == 0 {
				continue
			}
			b := Best{Key: key, Which: "lowest", Trial: trials[0], Current: by == p.Sweep.Order}
			if by.Max {
				b.Which = "highest"
			}
			b.Value = b.Trial.Cell(key)
			to := *p
			to.Sweep = &Sweep{Order: by}
			b.URL = to.tasksURL(TaskFilter{State: p.Tasks.Filter.State})
			best = append(best, b)
		}
	}
	return best
}

// TrialRows returns the selected trials.
func (p *RunPage) TrialRows() Rows[Trial] {
	rows, state := p.Sweep.rows(), p.Tasks.Filter.State
	first, matters := "trials that matter most", func(t Trial) bool { return t.Tone <= Active }
	isSorted := p.Sweep.Order.Key != ""
	if isSorted {
		rows, first = p.Sweep.best(p.Sweep.Order), "trials with the lowest "+p.Sweep.Order.Key
		if p.Sweep.Order.Max {
			first = "trials with the highest " + p.Sweep.Order.Key
		}
		matters = func(Trial) bool { return true }
	}
	if state != "" {
		rows = slices.DeleteFunc(rows, func(t Trial) bool { return t.State != state })
	}
	if !isSorted && state == "" && p.Tasks.Filter.Page == 0 {
		slices.SortStableFunc(rows, func(a, b Trial) int { return cmp.Compare(a.Tone, b.Tone) })
	}
	return paged(p, rows, len(p.Sweep.Trials), "trials", first, matters)
}

// TrialURL returns a trial page's address, or "" in a file.
func (p *RunPage) TrialURL(id string) string {
	if p.IsFile() {
		return ""
	}
	return RunURL(id)
}

// TrialSquares returns a square for each trial. The counts give the same information in words.
func (p *RunPage) TrialSquares() template.HTML {
	var b strings.Builder
	for _, t := range p.Sweep.rows() {
		b.WriteString(`<i class="` + t.Tone.class() + `"></i>`)
	}
	return template.HTML(b.String())
}

// How adds the exit code or the cause to the state.
func (t Trial) How() string {
	if t.ExitCode == nil || *t.ExitCode == 0 {
		return ""
	}
	how := "exit code " + itoa(*t.ExitCode)
	if t.Cause != spec.CauseOrigin && t.Cause != "" {
		how += ", " + t.Cause.Words()
	}
	return how
}

// Took returns how long the trial took, or has been running.
func (t Trial) Took() string {
	if t.Started.IsZero() {
		return ""
	}
	return units.Span(time.Duration(t.Seconds * float64(time.Second)))
}

// Step returns the trial's last progress.
func (t Trial) Step() string {
	switch p := t.Progress; {
	case p == nil:
		return ""
	case p.Total == 0:
		return number(p.Current)
	default:
		return number(p.Current) + "/" + number(p.Total)
	}
}

// Cell returns the number with a key, or "".
func (t Trial) Cell(key string) string {
	n, ok := t.Number(sweep.Order{Key: key})
	if !ok {
		return ""
	}
	return strconv.FormatFloat(n, 'g', 5, 64)
}

// Words returns the trial's parameters.
func (t Trial) Words(names []string) string {
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = name + "=" + t.Parameters[name]
	}
	return spec.OneLine(strings.Join(words, " "))
}
