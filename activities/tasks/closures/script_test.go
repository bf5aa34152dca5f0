package closures

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// TestScripts runs testdata/scripts: the events of a broker, line by line, and its answers.
// Each directive "broker" is a test with a broker and a clock of its own, which advances only in
// the lines sleep. Its lines are
//
//	serve PROCESS TASK [slots=N] [functions=F,F]
//	                      describes a process, which serves the function f by default
//	PROCESS [free=N] [wait=SECONDS] [OUTCOME]… [begun=IDS] [returned=IDS] [held=IDS] [lost]
//	                      the process asks. With lost it does not get the answer. The options
//	                      slots= and functions= replace the values of serve
//	                      OUTCOME: done=IDS quick=IDS error=IDS unavailable=IDS cancelled=IDS
//	PROCESS again         repeats its last request
//	PROCESS … later       makes a request, and PROCESS later sends it
//	PROCESS fast          its calls have been so quick that it gets many at once
//	lease NAME CLOSURE… [resources=IDS] [cancelled=IDS] [released=RANGES]
//	                      CLOSURE: an ID or a range, such as 1-3:task=worker-0
//	                      with the options function= task= uses=
//	drop NAME             a lease ends
//	cancel IDS [grace=TIME]
//	release RANGES
//	end TASK [PROCESS]    a process of the task has ended, or all of them
//	next [TASK=PROCESSES]…
//	                      another broker takes over, and knows these processes
//	sleep TIME
//	close
//	serving | holds
//
// The answers name the closures that a process gets, what a lease returns, tasks that are
// restarted, and reports of serving processes.
func TestScripts(t *testing.T) {
	scripts.Run(t, func() map[string]scripts.Directive {
		return map[string]scripts.Directive{"broker": func(t *testing.T, d *datadriven.TestData) (out string) {
			run(t, func(t *testing.T, h *host) {
				s := &script{host: h, processes: map[string]*fake{}, last: map[string]wire.ClosuresRequest{}, leases: map[string]*leasing{}}
				out = scripts.Events(t, d, s.step)
				h.Close()
				synctest.Wait()
			})
			return out
		}}
	})
}

type script struct {
	*host
	processes map[string]*fake
	last      map[string]wire.ClosuresRequest
	late      wire.ClosuresRequest
	leases    map[string]*leasing
	names     []string // of leases
	// waits are the processes that wait for an answer.
	waits    []waiter
	restarts int // that were shown
	reported int
}

type waiter struct {
	name   string
	lost   bool
	answer chan string
}

// words are the words of a line, and its options.
type words struct {
	plain   []string
	options map[string]string
}

func split(text, between string) words {
	w := words{options: map[string]string{}}
	for _, word := range strings.Split(text, between) {
		if key, value, ok := strings.Cut(word, "="); ok && !strings.Contains(key, ":") {
			w.options[key] = value
		} else {
			w.plain = append(w.plain, word)
		}
	}
	return w
}

func (w words) ids(key string) []uint64 { return idsIn(w.options[key]) }

func (w words) number(key string, otherwise int) int {
	if n, err := strconv.Atoi(w.options[key]); err == nil {
		return n
	}
	return otherwise
}

func (w words) time(key string) time.Duration {
	d, _ := time.ParseDuration(w.options[key])
	return d
}

// idsIn returns the IDs in ranges, in a text such as 1-3,5.
func idsIn(text string) (list []uint64) {
	for _, r := range rangesIn(text) {
		list = append(list, numbers(r[0], int(r[1]-r[0])+1)...)
	}
	return list
}

func rangesIn(text string) (list [][2]uint64) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, ok := strings.Cut(part, "-")
		if !ok {
			last = first
		}
		a, err := strconv.ParseUint(first, 10, 64)
		b, _ := strconv.ParseUint(last, 10, 64)
		if err == nil {
			list = append(list, [2]uint64{a, b})
		}
	}
	return list
}

// listOf returns the words between commas.
func listOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

func (s *script) step(line string) (string, error) {
	w := split(line, " ")
	said := ""
	switch arg := append(w.plain[1:], "", ""); w.plain[0] {
	case "serve":
		s.processes[arg[0]] = s.process(arg[1], arg[0], w.number("slots", 1), listOf(w.options["functions"])...)
	case "lease":
		s.leases[arg[0]] = s.leaseAll(leaseOf(w))
		s.names = append(s.names, arg[0])
	case "drop":
		s.leases[arg[0]].cancel()
	case "cancel":
		s.Cancel(closure.CancelLease{Closures: idsIn(arg[0]), Grace: cmp.Or(w.time("grace"), time.Hour)})
	case "release":
		s.Release(rangesIn(arg[0]))
	case "end":
		if call := s.ProcessEnded(arg[0], arg[1]); call != "" {
			said = arg[0] + " ended in " + call + "\n"
		}
	case "next":
		s.earlier = map[string][]string{}
		for task, list := range w.options {
			s.earlier[task] = listOf(list)
		}
		s.start()
	case "sleep":
		d, err := time.ParseDuration(arg[0])
		if err != nil {
			return "", err
		}
		time.Sleep(d)
	case "close":
		s.Close()
	case "serving":
		said = serves(s.servingTasks())
	case "holds":
		said = fmt.Sprintln(s.held())
	default:
		p := s.processes[w.plain[0]]
		if p == nil {
			return "", fmt.Errorf("there is no %s", w.plain[0])
		}
		if arg[0] == "fast" {
			p.fast()
		} else {
			s.ask(p, w)
		}
	}
	synctest.Wait()
	return said + s.happened(), nil
}

func leaseOf(w words) closure.Lease {
	in := closure.Lease{Cancelled: w.ids("cancelled"), Grace: 3 * time.Second}
	if text := w.options["released"]; text != "" {
		in.Released = rangesIn(text)
	}
	for _, id := range w.ids("resources") {
		in.Resources = append(in.Resources, closure.Resource{ID: id, Function: "load"})
	}
	for _, word := range w.plain[2:] {
		text, options, _ := strings.Cut(word, ":")
		o := split(options, ",")
		for _, id := range idsIn(text) {
			c := newClosure(id)
			c.Function = cmp.Or(o.options["function"], "f")
			c.Resources = o.ids("uses")
			c.Task = o.options["task"]
			in.Closures = append(in.Closures, c)
		}
	}
	return in
}

// ask makes a process send a request.
func (s *script) ask(p *fake, w words) {
	in := s.last[p.name]
	switch has := func(word string) bool { return slices.Contains(w.plain, word) }; {
	case has("again"):
	case has("later") && len(w.options) == 0:
		in = s.late
	default:
		in = p.report(outcomesOf(w)...)
		in.Free, in.Begun, in.Returned = w.number("free", 0), w.ids("begun"), w.ids("returned")
		in.Wait = float64(w.number("wait", 0))
		in.Slots = w.number("slots", in.Slots)
		p.held = slices.DeleteFunc(p.held, func(id uint64) bool { return slices.Contains(in.Returned, id) })
		if _, ok := w.options["held"]; ok {
			p.held = w.ids("held")
		}
		in.Held = slices.Clone(p.held)
		if f, ok := w.options["functions"]; ok {
			in.Functions = listOf(f)
		}
		if has("later") {
			s.late = in
			return
		}
		s.last[p.name] = in
	}
	waits := waiter{p.name, slices.Contains(w.plain, "lost"), make(chan string, 1)}
	b := s.Broker
	go func() {
		a, err := b.Next(s.t.Context(), p.task, in)
		switch {
		case err != nil:
			waits.answer <- err.Error()
		case waits.lost:
			waits.answer <- answer(a) + " (lost)"
		default:
			p.read(a)
			waits.answer <- answer(a)
		}
	}()
	s.waits = append(s.waits, waits)
}

func outcomesOf(w words) (list []wire.CallOutcome) {
	for _, key := range []string{"done", "quick", "error", "unavailable", "cancelled"} {
		for _, id := range w.ids(key) {
			o := wire.CallOutcome{ID: id, Kind: closure.OutcomeKind(key)}
			switch key {
			case "done":
				o = value(id)
			case "quick":
				o = quick(id)
			case "error":
				o = failed(id, "ValueError", "no")
			case "unavailable":
				o.Error = &closure.Error{Message: "gone", Task: "ps-0"}
			}
			list = append(list, o)
		}
	}
	return list
}

// answer returns the text of an answer to a process.
func answer(a wire.ClosuresAnswer) string {
	var parts []string
	add := func(name string, n int, each func(int) string) {
		var list []string
		for i := range n {
			list = append(list, each(i))
		}
		if n > 0 {
			parts = append(parts, strings.TrimSpace(name+" "+strings.Join(list, " ")))
		}
	}
	add("gets", len(a.Closures), func(i int) string { return fmt.Sprint(a.Closures[i].ID) })
	add("resources", len(a.Resources), func(i int) string { return fmt.Sprint(a.Resources[i].ID) })
	add("released", len(a.Released), func(i int) string { return fmt.Sprint(a.Released[i].First, "-", a.Released[i].Last) })
	add("cancel", len(a.Cancel), func(i int) string { return fmt.Sprint(a.Cancel[i]) })
	if a.Introduce {
		parts = append(parts, "introduce")
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

// happened returns what has happened since it was called last.
func (s *script) happened() string {
	var out strings.Builder
	s.waits = slices.DeleteFunc(s.waits, func(w waiter) bool {
		select {
		case text := <-w.answer:
			fmt.Fprintf(&out, "%s: %s\n", w.name, text)
			return true
		default:
			return false
		}
	})
	s.names = slices.DeleteFunc(s.names, func(name string) bool {
		l := s.leases[name]
		if l.waits() {
			return false
		}
		fmt.Fprintf(&out, "%s returns %s\n", name, returned(l))
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, task := range s.restarted[s.restarts:] {
		fmt.Fprintf(&out, "restart %s\n", task)
	}
	s.restarts = len(s.restarted)
	for _, r := range s.reports[s.reported:] {
		out.WriteString("reports " + serves(r))
	}
	s.reported = len(s.reports)
	return out.String()
}

// returned returns the result of a lease. An error names its closure and its task, as a test of
// errors shows.
func returned(l *leasing) string {
	if l.err != nil {
		return l.err.Error()
	}
	var parts []string
	for _, o := range l.result.Outcomes {
		text := fmt.Sprint(o.ID, "=", string(o.Value))
		if e := o.Error; e != nil {
			if text = fmt.Sprint(o.ID, " ", o.Kind); e.Message != closure.TextCancelled {
				text += fmt.Sprintf(" (%s)", e)
			}
			if o.Started {
				text += " started"
			}
			if e.Closure != o.ID || e.Task != o.Task {
				text += fmt.Sprintf(" of %d at %q", e.Closure, e.Task)
			}
		}
		if o.Task != "" {
			text += " at " + o.Task
		}
		parts = append(parts, text)
	}
	if len(l.result.Rest) > 0 {
		parts = append(parts, fmt.Sprint("rest ", l.result.Rest))
	}
	if l.result.Idle {
		parts = append(parts, "idle")
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

func serves(list []closure.ServingTask) string {
	var all []string
	for _, t := range list {
		all = append(all, fmt.Sprintf("%s of %s with %d of %s", t.Process, t.Task, t.Slots, strings.Join(t.Functions, " ")))
	}
	return cmp.Or(strings.Join(all, ", "), "nobody") + "\n"
}
