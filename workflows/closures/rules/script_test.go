package rules_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
)

// TestScripts runs testdata: the events of a queue, line by line, and its actions.
//
// A script has the directives
//
//	queue [size=N] [transient=K]
//	                               makes a queue
//	events                         applies events, one a line
//	status                         shows the answer to the query
//
// and in events the lines
//
//	serve HOST TASK[=SLOTS]… [functions=F,F] [queue=Q] [seq=N] [broker=B] [over=HOW]
//	                               the tasks that serve on a host; without TASK none does
//	schedule CLIENT FUNCTION…|N*FUNCTION [OPTION]… [uses=RESOURCE,…]
//	                               OPTION: task=
//	                               [args=JSON] [batch=N] [epoch=N]; without epoch the client knows the latest
//	resource CLIENT FUNCTION [number=N] [of=TASK:PROCESS]
//	release CLIENT IDS
//	release TASK below=PROCESS     the host of a task says that its processes before have ended
//	resources                      shows the number of resources
//	heard|unheard RELEASE          a release of resources has reached a host, or could not
//	join|done CLIENT [call=N]
//	withdraw CLIENT call=N         a client no longer waits for its join or done
//	ended LEASE [OUTCOME]… [rest=IDS] [idle] [took=MILLISECONDS] [stray]
//	                               OUTCOME: ok=IDS error=IDS:TEXT alone=IDS:TEXT input=IDS:TEXT
//	                               cancelled=IDS lost=IDS[@TASK] (called)
//	                               unstarted=IDS (lost) unavailable=IDS@TASK
//	lost LEASE                     the host worker no longer answers
//	cancel all|IDS
//	untold HOST IDS                a request to cancel them did not reach the host
//	suspend | resume | continue-as-new
//	run-ended HOW
//
// IDS are as in 1,4-6, or "all" for the closures of the lease that are not named before in the
// line. With "stray" a lease may return closures that it does not name. In the answers, 3* is a
// closure that the host holds already, and 3#2 one that is called for the second time.
func TestScripts(t *testing.T) {
	scripts.Run(t, func() map[string]scripts.Directive {
		var s *script
		return map[string]scripts.Directive{
			"queue": func(t *testing.T, d *datadriven.TestData) string {
				s = newScript(t, d)
				return ""
			},
			"events": func(t *testing.T, d *datadriven.TestData) string { return scripts.Events(t, d, s.step) },
			"status": func(*testing.T, *datadriven.TestData) string { return s.status() },
		}
	})
}

type script struct {
	config rules.Config
	queue  *rules.Queue
	seq    int64
	// numbers holds the number of each client's last request, and epochs the last epoch it
	// received.
	numbers, epochs map[string]uint64
	open            []openCall
	// held are the closures that a host was given, with the attempt.
	held map[uint64]int
	// leases holds the closures of each lease.
	leases map[int][]uint64
}

// openCall is a request without an answer.
type openCall struct {
	ready func() bool
	tell  func() string
}

func newScript(t *testing.T, d *datadriven.TestData) *script {
	in := closure.QueueInput{}
	for _, a := range d.CmdArgs {
		n, err := strconv.Atoi(strings.Join(a.Vals, ""))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		switch a.Key {
		case "size":
			in.QueueSize = n
		case "transient":
			in.TransientUnavailable = &n
		default:
			d.Fatalf(t, "%s is not known", a.Key)
		}
	}
	config := rules.ConfigOf(in)
	return &script{
		config: config, queue: rules.New(config),
		numbers: map[string]uint64{}, epochs: map[string]uint64{}, held: map[uint64]int{}, leases: map[int][]uint64{},
	}
}

func (s *script) step(line string) (string, error) {
	answer, err := s.event(line)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString(answer)
	for _, a := range s.queue.Actions() {
		out.WriteString("  " + s.action(a) + "\n")
	}
	s.open = slices.DeleteFunc(s.open, func(c openCall) bool {
		if c.ready() {
			out.WriteString("  " + c.tell() + "\n")
		}
		return c.ready()
	})
	return out.String(), nil
}

func (s *script) event(line string) (answer string, err error) {
	words := strings.Fields(line)
	rest := strings.TrimSpace(strings.TrimPrefix(line, words[0]))
	switch words[0] {
	case "serve":
		return "", s.serve(words[1:])
	case "schedule":
		return s.schedule(words[1:])
	case "resource":
		return s.resource(words[1:])
	case "release":
		return s.release(words[1:])
	case "resources":
		return fmt.Sprintf("  there are %d\n", s.queue.Status().Counts.Resource), nil
	case "heard", "unheard":
		n, err := strconv.Atoi(rest)
		s.queue.ReleaseEnded(n, words[0] == "heard")
		return "", err
	case "join", "done":
		return s.wait(words)
	case "withdraw":
		n, err := strconv.ParseUint(strings.TrimPrefix(words[2], "call="), 10, 64)
		a := s.queue.Withdraw(closure.WaitRequest{Client: words[1], Call: n})
		return fmt.Sprintf("  withdrawn: %t\n", a.Withdrawn), err
	case "ended":
		return "", s.ended(words[1:])
	case "lost":
		n, err := strconv.Atoi(rest)
		s.queue.LeaseLost(n)
		return "", err
	case "refused":
		n, err := strconv.Atoi(rest)
		s.queue.LeaseRefused(n)
		return "", err
	case "cancel":
		r := closure.CancelRequest{}
		if rest != "all" {
			if r.Closures, err = ids(rest); err != nil {
				return "", err
			}
		}
		a := s.queue.Cancel(r)
		return fmt.Sprintf("  cancelled %d, told %d\n", a.Cancelled, a.Told), nil
	case "untold":
		host, list, _ := strings.Cut(rest, " ")
		told, err := ids(list)
		s.queue.CancelLost(rules.CancelOn{Host: host, Queue: "q/" + host, Closures: told})
		return "", err
	case "suspend":
		s.queue.Suspend(true)
	case "resume":
		s.queue.Suspend(false)
	case "continue-as-new":
		return "", s.continueAsNew()
	case "run-ended":
		s.queue.RunEnded(rest)
	default:
		return "", errors.New("no such event")
	}
	return "", nil
}

func (s *script) serve(words []string) error {
	m := closure.ServingMessage{Host: words[0], Queue: "q/" + words[0]}
	functions := []string{"f", "g"}
	s.seq++
	m.Seq = s.seq
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "functions":
			functions = strings.Split(value, ",")
		case "queue":
			m.Queue = value
		case "broker":
			m.Broker = value
		case "over":
			m.Over = "run iris has " + value
		case "seq":
			m.Seq = int64(n)
		default:
			m.Serving = append(m.Serving, closure.ServingTask{Task: name, Slots: max(n, 1)})
		}
	}
	for i := range m.Serving {
		m.Serving[i].Functions = functions
	}
	s.queue.Serving(m)
	return nil
}

func (s *script) number(client string, given string) uint64 {
	if given != "" {
		n, _ := strconv.ParseUint(given, 10, 64)
		return n
	}
	s.numbers[client]++
	return s.numbers[client]
}

func (s *script) schedule(words []string) (string, error) {
	client := words[0]
	r := closure.ScheduleRequest{Client: client, Epoch: s.epochs[client]}
	batch, task := "", ""
	var uses []uint64
	args := ""
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(value)
		switch {
		case name == "batch":
			batch = value
		case name == "epoch":
			r.Epoch = uint64(n)
		case name == "args":
			args = value
		case name == "uses":
			var err error
			if uses, err = ids(value); err != nil {
				return "", err
			}
		case name == "task":
			task = value
		default:
			times, function, many := strings.Cut(w, "*")
			if !many {
				times, function = "1", w
			}
			n, err := strconv.Atoi(times)
			if err != nil {
				return "", err
			}
			for range n {
				r.Closures = append(r.Closures, closure.Closure{Function: function})
			}
		}
	}
	for i := range r.Closures {
		r.Closures[i].Resources, r.Closures[i].Args, r.Closures[i].Task = uses, []byte(args), task
	}
	r.Batch = s.number(client+" batch", batch)
	if err := s.queue.CheckSchedule(r); err != nil {
		return "  refused: " + strings.ReplaceAll(err.Error(), "\n", "\n    ") + "\n", nil
	}
	call, n := s.queue.Schedule(r), len(r.Closures)
	s.open = append(s.open, openCall{call.Ready, func() string {
		a, err := call.Answer()
		if err != nil {
			return fmt.Sprintf("%s batch %d: %v", client, r.Batch, err)
		}
		s.epochs[client] = a.Epoch
		text := fmt.Sprintf("%s batch %d: closures %d", client, r.Batch, a.First)
		if n > 1 {
			text += fmt.Sprintf("-%d", a.First+uint64(n)-1)
		}
		if a.Cancelled {
			text += ", cancelled"
		}
		if a.Room != nil && *a.Room < 100 {
			text += fmt.Sprintf(", room for %d", *a.Room)
		}
		return text + raised(a.Raised, a.Epoch)
	}})
	return "", nil
}

func (s *script) resource(words []string) (string, error) {
	r := closure.ResourceRequest{Client: words[0], Resource: closure.Resource{Function: words[1]}}
	given := ""
	for _, w := range words[2:] {
		if of, ok := strings.CutPrefix(w, "of="); ok {
			task, process, _ := strings.Cut(of, ":")
			r.Task = task
			r.Process, _ = strconv.Atoi(process)
			continue
		}
		given = strings.TrimPrefix(w, "number=")
	}
	r.Number = s.number(words[0]+" resource", given)
	a, err := s.queue.CreateResource(r)
	if err != nil {
		return fmt.Sprintf("  refused: %v\n", err), nil
	}
	return fmt.Sprintf("  resource %d\n", a.ID), nil
}

func (s *script) release(words []string) (string, error) {
	var r closure.ReleaseRequest
	if below, ok := strings.CutPrefix(words[1], "below="); ok {
		n, err := strconv.Atoi(below)
		if err != nil {
			return "", err
		}
		r.Task, r.Process = words[0], n
	} else {
		which, err := ids(words[1])
		if err != nil {
			return "", err
		}
		r.Client, r.Resources = words[0], which
	}
	if err := s.queue.CheckRelease(r); err != nil {
		return fmt.Sprintf("  refused: %v\n", err), nil
	}
	return fmt.Sprintf("  released %d\n", s.queue.ReleaseResources(r).Released), nil
}

func (s *script) wait(words []string) (string, error) {
	client, given := words[1], ""
	if len(words) > 2 {
		given = strings.TrimPrefix(words[2], "call=")
	}
	r := closure.WaitRequest{Client: client, Call: s.number(client+" call", given)}
	ask := s.queue.Join
	if words[0] == "done" {
		ask = s.queue.Done
	}
	if err := s.queue.CheckWait(r); err != nil {
		return fmt.Sprintf("  refused: %v\n", err), nil
	}
	call := ask(r)
	s.open = append(s.open, openCall{call.Ready, func() string {
		a, err := call.Answer()
		text := fmt.Sprintf("%s call %d (%s): ", client, r.Call, words[0])
		if err != nil {
			return text + err.Error()
		}
		s.epochs[client] = a.Epoch
		if a.Done {
			return text + "done" + raised(a.Raised, a.Epoch)
		}
		return text + "not done" + raised(a.Raised, a.Epoch)
	}})
	return "", nil
}

func raised(e *closure.Error, epoch uint64) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf(", raised %v (of closure %d at %s), epoch %d", e, e.Closure, e.Task, epoch)
}

func (s *script) ended(words []string) error {
	lease, err := strconv.Atoi(words[0])
	if err != nil {
		return err
	}
	var r closure.LeaseResult
	left := slices.Clone(s.leases[lease])
	stray := slices.Contains(words, "stray")
	for _, w := range words[1:] {
		switch w {
		case "idle":
			r.Idle = true
			continue
		case "stray":
			continue
		}
		name, value, _ := strings.Cut(w, "=")
		if name == "took" {
			r.Done = len(r.Outcomes)
			if r.Took, err = strconv.Atoi(value); err != nil {
				return err
			}
			continue
		}
		value, text, _ := strings.Cut(value, ":")
		value, task, _ := strings.Cut(value, "@")
		which := left
		if value != "all" {
			if which, err = ids(value); err != nil {
				return err
			}
		}
		before := len(left)
		left = slices.DeleteFunc(slices.Clone(left), func(id uint64) bool { return slices.Contains(which, id) })
		if len(left)+len(which) != before && !stray {
			return fmt.Errorf("%s: the lease names %v", w, s.leases[lease])
		}
		if name == "rest" {
			r.Rest = which
			continue
		}
		for _, id := range which {
			o := closure.Outcome{ID: id, Kind: closure.OutcomeKind(name), Task: "worker-0"}
			switch name {
			case "ok":
				o.Kind = ""
			case "error":
				o.Error = &closure.Error{Kind: "ValueError", Message: text}
			case "alone":
				o.Kind, o.Alone = closure.OutcomeError, true
				o.Error = &closure.Error{Kind: closure.ErrNotJSON, Message: text}
			case "input":
				o.Error = &closure.Error{Kind: closure.ErrInput, Message: text}
			case "lost":
				o.Started = true
				if task != "" {
					o.Task = task
				}
			case "unstarted":
				o.Kind = closure.OutcomeLost
			case "unavailable":
				if task == "" {
					o.Error = &closure.Error{Message: "connection refused"}
					break
				}
				o.Error = &closure.Error{Message: task + " does not answer", Task: task}
			}
			r.Outcomes = append(r.Outcomes, o)
		}
	}
	s.queue.LeaseEnded(lease, r)
	return nil
}

func (s *script) continueAsNew() error {
	s.queue.Suspend(true)
	snapshot, err := s.queue.Snapshot()
	if err != nil {
		return err
	}
	text, err := json.Marshal(snapshot)
	if err != nil {
		return err
	}
	var read rules.Snapshot
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	s.queue, s.open = rules.Restore(s.config, &read), nil
	return nil
}

func (s *script) action(a rules.Action) string {
	switch a := a.(type) {
	case rules.Dispatch:
		for _, c := range a.Closures {
			s.leases[a.Number] = append(s.leases[a.Number], c.ID)
		}
		text := fmt.Sprintf("lease %d to %s:", a.Number, a.Host)
		if want := "q/" + a.Host; a.TaskQueue != want {
			text = fmt.Sprintf("lease %d to %s (%s):", a.Number, a.Host, a.TaskQueue)
		}
		if n := len(a.Closures); n > 20 {
			text += fmt.Sprintf(" %d closures from %d to %d", n, a.Closures[0].ID, a.Closures[n-1].ID)
		} else {
			for _, c := range a.Closures {
				text += fmt.Sprintf(" %d", c.ID)
				if s.held[c.ID] == c.Attempt {
					text += "*"
				}
				if c.Attempt != 1 {
					text += fmt.Sprintf("#%d", c.Attempt)
				}
			}
		}
		for _, c := range a.Closures {
			s.held[c.ID] = c.Attempt
		}
		if len(a.Cancelled) > 0 {
			text += " (cancelled: " + ranges(a.Cancelled) + ")"
		}
		for _, r := range a.Resources {
			text += fmt.Sprintf(" [resource %d: %s]", r.ID, r.Function)
		}
		for _, r := range a.Released {
			text += fmt.Sprintf(" [gone %d-%d]", r[0], r[1])
		}
		return text
	case rules.ReleaseOn:
		text := fmt.Sprintf("release %d on %s:", a.Release, a.Host)
		for _, r := range a.Released {
			text += fmt.Sprintf(" %d-%d", r[0], r[1])
		}
		return text
	case rules.CancelOn:
		return fmt.Sprintf("cancel on %s: %s", a.Host, ranges(a.Closures))
	case rules.Decide:
		text := "decide:"
		for _, r := range a.Cancelled {
			text += fmt.Sprintf(" cancelled %d-%d", r[0], r[1])
		}
		if a.Text != "" {
			text += fmt.Sprintf(" %q", a.Text)
		}
		for _, o := range a.Other {
			text += fmt.Sprintf(" %d %s: %v", o.ID, o.Kind, o.Error)
		}
		return text
	}
	return fmt.Sprintf("%#v", a)
}

func (s *script) status() string {
	var out strings.Builder
	st := s.queue.Status()
	fmt.Fprintf(&out, "%s", st.State)
	if st.Error != nil {
		fmt.Fprintf(&out, ": %v", st.Error)
	}
	c := st.Counts
	fmt.Fprintf(&out, "\nscheduled %d = queued %d + executing %d + finished %d + failed %d + cancelled %d; calls %d, put back %d\n",
		c.Scheduled, c.Queued, c.Executing, c.Finished, c.Failed, c.Cancelled, c.Calls, c.PutBack)
	for _, w := range st.Workers {
		fmt.Fprintf(&out, "%s at %s, slots %d, serving %v\n", w.Task, w.Host, w.Slots, w.Serving)
	}
	if first, last := s.queue.Ended(); first > 0 {
		fmt.Fprintf(&out, "ended from %d to %d\n", first, last)
	}
	return out.String()
}

// ids reads a list such as 1,4-6.
func ids(text string) ([]uint64, error) {
	var list []uint64
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 64)
		if err != nil {
			return nil, err
		}
		last := first
		if isRange {
			if last, err = strconv.ParseUint(to, 10, 64); err != nil {
				return nil, err
			}
		}
		for id := first; id <= last; id++ {
			list = append(list, id)
		}
	}
	return list, nil
}

// ranges writes a list such as 1-3 7.
func ranges(list []uint64) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if j == i {
			parts = append(parts, fmt.Sprint(list[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, " ")
}
