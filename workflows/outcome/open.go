package outcome

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// Text describes what the run is waiting for, and for how long.
func (w Waiting) Text(now time.Time) string {
	if w.After != "" {
		return "run " + w.After + " to end"
	}
	if w.Position > 0 {
		return fmt.Sprintf("%s (position %d in queue %s)", w.Refusal, w.Position, w.Queue)
	}
	place := "any host"
	if w.Host != "" {
		place = "host " + w.Host
	}
	if f := w.Fetching; f != nil {
		verb := "fetches"
		if f.Unpacking {
			verb = "unpacks"
		}
		return fmt.Sprintf("host %s, which %s the shipped files: %s of %s", f.Host, verb, units.Bytes(f.Bytes), units.Bytes(f.Size))
	}
	text := fmt.Sprintf("%s (queue %s): %s", place, w.Queue, cmp.Or(w.Refusal, "no host worker has answered yet"))
	if left := w.Until.Sub(now); !w.Until.IsZero() {
		text += fmt.Sprintf("; the run stops waiting in %s", span(max(0, left)))
	}
	return text
}

// StoppingLine returns who asked the tasks to stop, when and why, and the time left.
func StoppingLine(s spec.Stopping, now time.Time) string {
	// The run's clock may differ from this process's.
	text := fmt.Sprintf("%s (%s ago", s, span(max(0, now.Sub(s.Asked))))
	switch left := s.Deadline.Sub(now); {
	case s.Deadline.IsZero():
		text += "; the run was already ending"
	case left > 0:
		text += fmt.Sprintf("; %s left", span(left))
	default:
		text += "; their time has passed"
	}
	return text + ")"
}

// progress adds the running tasks' progress, for example "40..55%, 3m10s left". The time left is
// extrapolated from each process's run time; the maximum over all tasks is shown.
func (f *facts) progress() {
	least, most := 101, -1
	var left time.Duration
	for _, t := range f.s.Tasks {
		p := t.Progress
		if t.State == spec.TaskEnded || p == nil || p.Total <= 0 {
			continue
		}
		least, most = min(least, p.Percent()), max(most, p.Percent())
		if took := f.now.Sub(t.Started); !t.Started.IsZero() && took > 0 && p.Current > 0 {
			rest := math.Max(0, p.Total-p.Current) / p.Current * took.Seconds()
			left = max(left, time.Duration(min(rest, math.MaxInt32)*float64(time.Second)))
		}
	}
	if most < 0 {
		return
	}
	text := fmt.Sprintf("%d%%", most)
	if least < most {
		text = fmt.Sprintf("%d..%d%%", least, most)
	}
	key := text
	if left >= time.Second {
		text += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	f.add(FactProgress, Active, text, key)
}
