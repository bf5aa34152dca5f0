package lifecycle_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// TestScripts runs the scripts in testdata, which list a run's events and the machine's actions.
// `go test -run Scripts -rewrite` rewrites the answers.
//
// A script consists of the directives
//
//	run      starts a run with the spec in its body
//	events   applies events, one per line, and shows the actions
//	status   shows the answer to the status query
//
// and events consists of the lines
//
//	begin [elapsed=DURATION]|[tasks=N]
//	unplaced: TEXT                  no host accepted the tasks
//	skipped: TEXT                   an earlier run ended differently
//	ended TASK HOW [launch=N] [generation=N]
//	                                its activity closed; the default is the latest
//	process TASK HOW                a process exited and the host starts another,
//	                                reported to the run only on release
//	given-up HOST                   it did not return after its generation
//	timer NAME
//	cancel: TEXT
//	terminate|restart|signal TASK,TASK [signal=NAME] [grace=DURATION]
//	terminate-all [signal=NAME] [grace=DURATION]
//	start TASK
//	stacks TASK,TASK                an operator requests them
//	silent TASK,TASK                a host reports all its tasks as silent
//	captured [TASK=PATH]… [host=TASK,HOST]… [in=TASK,TASK:PLACE]…
//	                                the answer to capture; stackOf lists the places
//	together [TASK] [key=KEY] [kind=KIND] [at=DURATION] [reason=WORD]: TEXT
//	                                a task, or by default an operator, asks all
//	                                tasks to stop, with KIND: TEXT as its error;
//	                                it accepts generation=N
//	notice [queue|drain|operator] within=DURATION [at=DURATION] [requeue]: TEXT
//	                                the tasks get notice that they will be stopped
//	UPDATE {FIELD: VALUE, …}        any other update by name, such as "exec {task: worker-0}"
//	resume                          the workflow continues as new
//	resumed elapsed=DURATION        and starts
//	released [host=TASK,HOST]… [value=TASK,JSON]… [problem=TEXT]… [lost=HOST]… [forgotten]
//
// HOW is one of
//
//	ok | exit=N | killed=SIGNAL     on its own
//	stopped | terminated | timeout | lost | silent     by us, or not on its own
//	[lived=DURATION] [step=DURATION] [unkillable] [code=N]      code: of a process that was stopped
//	nothing | gone                  no process existed | its host was given up
//
// with [prints=T [peer] [logged] [place=FILE:LINE]] for an error in its output, with the message
// as its line, [trace=N] for what torch's Flight Recorder wrote, [host=NAME], [boot=N] for the
// host's clock, [number=N] for a process with the number of an earlier one, [report] for an error
// the program reported, and ": TEXT" for its message.
// [started=T], [ended=T] and [error=T] are durations after 2026-11-21 10:00:00: when the process
// started and ended, and when it wrote its error file.
func TestScripts(t *testing.T) {
	scripts.Run(t, func() map[string]scripts.Directive {
		var s *script
		return map[string]scripts.Directive{
			"run": func(t *testing.T, d *datadriven.TestData) string {
				s = newScript(t, d)
				return ""
			},
			"events": func(t *testing.T, d *datadriven.TestData) string { return scripts.Events(t, d, s.step) },
			"status": func(*testing.T, *datadriven.TestData) string { return s.status() },
		}
	})
}

// scriptStart is when scripts start.
var scriptStart = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// script is a run and the world around it.
type script struct {
	spec     *spec.RunSpec
	machine  *lifecycle.Machine
	launches map[string]int
	exits    map[string][]spec.Exit
	// generation and first belong to the latest launches.
	generation, first int
	// captureFor is the latest capture's cause.
	captureFor spec.Cause
}

func newScript(t *testing.T, d *datadriven.TestData) *script {
	s := &spec.RunSpec{Command: []string{"true"}}
	if err := yaml.UnmarshalStrict([]byte(d.Input), s); err != nil {
		d.Fatalf(t, "%v", err)
	}
	if err := s.Validate(); err != nil {
		d.Fatalf(t, "%v", err)
	}
	s = s.WithDefaults()
	return &script{
		spec: s, machine: lifecycle.New(s, s.TaskList()),
		launches: map[string]int{}, exits: map[string][]spec.Exit{},
	}
}

func (s *script) step(line string) (string, error) {
	event, err := s.event(line)
	var invalid *spec.InvalidRequestError
	if !errors.As(err, &invalid) && (err != nil || event == nil || s.resumed(event)) {
		return "", err
	}
	var out strings.Builder
	if err == nil {
		err = s.machine.Check(event)
	}
	if err != nil {
		fmt.Fprintf(&out, "  refused: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n           "))
		return out.String(), nil
	}
	for _, a := range s.machine.Step(event) {
		if l, ok := a.(lifecycle.Launch); ok {
			s.launches[l.Task.Name()] = l.Launch
			s.generation = l.Generation
		}
		if c, ok := a.(lifecycle.Capture); ok {
			s.captureFor = c.For
		}
		if again, ok := a.(lifecycle.RestartGroup); ok {
			s.first = again.First
		}
		out.WriteString(show(a))
	}
	switch event.(type) {
	case lifecycle.StopTogether, lifecycle.GiveNotice:
		fmt.Fprintf(&out, "  answer: %s\n", showStopping(s.machine.Stopping()))
	}
	return out.String(), nil
}

func (s *script) event(line string) (lifecycle.Event, error) {
	head, text, _ := strings.Cut(line, ": ")
	text = strings.ReplaceAll(text, `\n`, "\n")
	words := strings.Fields(strings.TrimSuffix(head, ":"))
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	signal, grace := "", (*spec.Duration)(nil)
	for _, w := range words {
		if v, ok := strings.CutPrefix(w, "signal="); ok {
			signal = v
		}
		if v, ok := strings.CutPrefix(w, "grace="); ok {
			g, err := spec.ParseDuration(v)
			if err != nil {
				return nil, err
			}
			grace = &g
		}
	}
	var tasks []string
	if !strings.Contains(arg(1), "=") && arg(1) != "" {
		tasks = strings.Split(arg(1), ",")
	}
	switch words[0] {
	case "begin":
		if n, ok := strings.CutPrefix(arg(1), "tasks="); ok {
			tasks, err := strconv.Atoi(n)
			return lifecycle.Begin{Tasks: tasks}, err
		}
		elapsed, err := time.ParseDuration(strings.TrimPrefix(cmp.Or(arg(1), "elapsed=0s"), "elapsed="))
		return lifecycle.Begin{Elapsed: elapsed}, err
	case "resumed":
		elapsed, err := time.ParseDuration(strings.TrimPrefix(arg(1), "elapsed="))
		return lifecycle.Resumed{Elapsed: elapsed}, err
	case "stacks":
		return lifecycle.CaptureStacks{StacksRequest: spec.StacksRequest{Tasks: tasks}}, nil
	case "captured":
		return s.captured(words[1:])
	case "silent":
		return lifecycle.Silent{SilentRequest: spec.SilentRequest{Tasks: tasks, Generation: s.generation}}, nil
	case "resume":
		return resume{}, nil
	case "unplaced":
		return lifecycle.PlacementFailed{Message: text}, nil
	case "given-up":
		return lifecycle.HostGivenUp{Host: words[1]}, nil
	case "skipped":
		return lifecycle.PlacementFailed{Message: text, Skipped: true}, nil
	case "ended", "process":
		return s.ended(words, text)
	case "timer":
		return lifecycle.TimerFired{Timer: lifecycle.Timer(arg(1))}, nil
	case "notice":
		return notice(words, text)
	case "together":
		return together(words, tasks, text)
	case "cancel":
		return lifecycle.Cancel{Reason: text}, nil
	case "terminate":
		return lifecycle.TerminateTasks{TaskRequest: spec.TaskRequest{Tasks: tasks, Signal: signal, Grace: grace}}, nil
	case "terminate-all":
		return lifecycle.TerminateAll{TerminateAllRequest: spec.TerminateAllRequest{Signal: signal, Grace: grace}}, nil
	case "restart":
		return lifecycle.RestartTasks{TaskRequest: spec.TaskRequest{Tasks: tasks, Signal: signal, Grace: grace}}, nil
	case "signal":
		return lifecycle.SignalTasks{SignalRequest: spec.SignalRequest{Tasks: tasks, Signal: signal}}, nil
	case "start":
		return lifecycle.StartTask{StartTaskRequest: spec.StartTaskRequest{Task: arg(1), New: arg(2) == "new"}}, nil
	case "released":
		return s.released(words[1:])
	}
	for _, u := range lifecycle.Updates {
		if u.Name == words[0] {
			input := strings.TrimPrefix(line, words[0])
			return u.Event(func(q any) error { return yaml.UnmarshalStrict([]byte(input), q) }, scriptStart)
		}
	}
	return nil, fmt.Errorf("no such event")
}

func (s *script) captured(words []string) (lifecycle.Event, error) {
	e := lifecycle.Captured{For: s.captureFor, Files: map[string]string{}, Hosts: map[string]string{}}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "in":
			names, place, _ := strings.Cut(value, ":")
			for name := range strings.SplitSeq(names, ",") {
				rank, ok := s.machine.Rank(name)
				if !ok {
					return nil, fmt.Errorf("no such task: %s", name)
				}
				e.Stacks = stacktree.Merge(e.Stacks, stacktree.Of(rank, stackOf(place)))
			}
		case "host":
			task, host, _ := strings.Cut(value, ",")
			e.Hosts[task] = host
		default:
			e.Files[key] = value
		}
	}
	return e, nil
}

// stackOf returns a rank's stack in a collective (all_reduce, barrier) or in the program itself.
// Any other place names the rank's host, which did not answer.
func stackOf(place string) stacktree.Stack {
	step := stacktree.Frame{Kind: stacktree.Python, Function: "step", File: "/home/ann/train.py", Line: 9}
	switch place {
	case "all_reduce", "barrier":
		return stacktree.Stack{step, {Kind: stacktree.Python, Function: place, File: "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", Line: 2501}}
	case "load_batch":
		return stacktree.Stack{step, {Kind: stacktree.Python, Function: place, File: step.File, Line: 4}, {Kind: stacktree.Kernel, Function: "clock_nanosleep"}}
	}
	return stacktree.NoAnswer(place)
}

func together(words, tasks []string, text string) (lifecycle.Event, error) {
	q := spec.TogetherRequest{Error: &spec.TogetherError{Message: text}}
	if len(tasks) > 0 {
		q.Task = tasks[0]
	}
	at := scriptStart
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "key":
			q.Key = value
		case "kind":
			q.Error.Kind = value
		case "reason":
			q.Reason = value
		case "generation":
			q.Generation = n
		case "boot":
			q.BootNanos = int64(n)
		case "at":
			after, err := time.ParseDuration(value)
			if err != nil {
				return nil, err
			}
			at = at.Add(after)
		case q.Task:
		default:
			return nil, fmt.Errorf("no such word: %s", w)
		}
	}
	message, traceback, _ := strings.Cut(text, "\n")
	if q.Error.Message, q.Error.Traceback = message, traceback; *q.Error == (spec.TogetherError{}) {
		q.Error = nil
	}
	return lifecycle.StopTogether{TogetherRequest: q, At: at}, nil
}

func notice(words []string, text string) (lifecycle.Event, error) {
	e := lifecycle.GiveNotice{From: spec.NoticeFrom(words[1]), Reason: text, At: scriptStart}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		if key == "requeue" {
			e.Requeue = true
			continue
		}
		d, err := time.ParseDuration(value)
		if err != nil {
			return nil, err
		}
		switch key {
		case "within":
			e.Within = d
		case "at":
			e.At = e.At.Add(d)
		default:
			return nil, fmt.Errorf("no such word: %s", w)
		}
	}
	return e, nil
}

func (s *script) ended(words []string, text string) (lifecycle.Event, error) {
	task := words[1]
	number := s.first
	if all := s.exits[task]; len(all) > 0 {
		number = max(number, all[len(all)-1].Restart+1)
	}
	e := spec.Exit{
		Restart: number, PID: 100 + number, Message: text,
		LogDir: fmt.Sprintf("/logs/attempt_%d/%s", number, task),
	}
	launch, generation, nothing, gone, await, host := s.launches[task], s.generation, false, false, false, ""
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "ok":
			e.Cause = spec.CauseCompleted
		case "exit":
			e.Cause, e.ExitCode = spec.CauseOrigin, n
		case "killed":
			number, err := spec.SignalNumber(value)
			if err != nil {
				return nil, err
			}
			e.Cause, e.ExitCode, e.Signal = spec.CauseOrigin, -number, value
		case "stopped":
			e.Cause, e.ExitCode, e.Signal = spec.CauseCollateral, -15, "SIGTERM"
		case "terminated":
			e.Cause, e.ExitCode, e.Signal = spec.CauseOperator, -15, "SIGTERM"
		case "silent":
			e.Cause, e.ExitCode, e.Signal = spec.CauseSilence, -15, "SIGTERM"
		case "timeout":
			e.Cause, e.ExitCode, e.Signal = spec.CauseTimeout, -9, "SIGKILL"
		case "shutdown":
			e.Cause, e.ExitCode, e.Signal = spec.CauseHostLost, -15, "SIGTERM"
		case "lost":
			e.Cause, e.ExitCode = spec.CauseHostLost, -1
		case "at":
			e.LastStep = new(float64(n))
		case "nothing":
			nothing = true
		case "gone":
			nothing, gone = true, true
		case "report":
			e.Reported = true
		case "code":
			e.ExitCode, e.Signal = n, ""
		case "host":
			host = value
		case "unkillable":
			e.Unkillable = true
		case "boot":
			e.BootNanos = int64(n)
		case "peer":
			e.Printed.LostPeer = true
		case "await":
			await = true
		case "logged":
			e.Printed.Survivable = true
		case "place":
			e.Printed.Place = value
		case "trace":
			e.TraceFile = e.LogDir + "/torch_trace_rank_" + value
		case "started", "ended", "error", "prints":
			after, err := time.ParseDuration(value)
			if err != nil {
				return nil, err
			}
			at := scriptStart.Add(after)
			switch key {
			case "started":
				e.Started = at
			case "ended":
				e.Ended, e.BootNanos = at, int64(time.Hour+after)
			case "prints":
				line, _, _ := strings.Cut(text, "\n")
				e.Printed = &spec.PrintedError{Kind: "python", Line: line, After: at, By: at}
			case "error":
				e.ErrorTime, e.ErrorFile = at, e.LogDir+"/error.json"
			}
		case "step":
			took, err := time.ParseDuration(value)
			if err != nil {
				return nil, err
			}
			e.Steps = &spec.StepTime{Seconds: took.Seconds(), Steps: 60}
		case "number":
			e.Restart = n
		case "launch":
			launch = n
		case "generation":
			generation = n
		case "lived":
			d, err := time.ParseDuration(value)
			if err != nil {
				return nil, err
			}
			e.Started = time.Unix(1, 0)
			e.Ended = e.Started.Add(d)
		default:
			return nil, fmt.Errorf("no such word: %s", w)
		}
	}
	if nothing {
		return lifecycle.TaskEnded{Task: task, Generation: generation, Launch: launch, Host: host, GivenUp: gone}, nil
	}
	if launch == s.launches[task] && generation == s.generation {
		s.exits[task] = append(s.exits[task], e)
	}
	if words[0] == "process" {
		return nil, nil
	}
	return lifecycle.TaskEnded{Task: task, Generation: generation, Launch: launch, Host: host, Exit: &e, Await: await}, nil
}

// resume stands for the end of one workflow execution and the start of the next.
type resume struct{ lifecycle.Begin }

func (s *script) resumed(e lifecycle.Event) bool {
	if _, ok := e.(resume); !ok {
		return false
	}
	var from lifecycle.State
	b, err := json.Marshal(s.machine.State())
	if err == nil {
		err = json.Unmarshal(b, &from)
	}
	if err != nil {
		panic(err)
	}
	s.machine = lifecycle.Resume(s.spec, s.spec.TaskList(), from)
	return true
}

func (s *script) released(words []string) (lifecycle.Event, error) {
	e := lifecycle.Released{Exits: s.exits, Hosts: map[string]string{}, Values: map[string][]byte{}}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		task, rest, _ := strings.Cut(value, ",")
		switch key {
		case "host":
			e.Hosts[task] = rest
		case "value":
			e.Values[task] = []byte(rest)
		case "problem":
			e.Problems = append(e.Problems, value)
		case "lost":
			e.Lost = append(e.Lost, value)
		case "forgotten":
			e.Exits = nil
		default:
			return nil, fmt.Errorf("no such word: %s", w)
		}
	}
	return e, nil
}

func (s *script) status() string {
	state, tasks := s.machine.Status()
	var out strings.Builder
	if stopping := s.machine.Stopping(); stopping.Stop {
		fmt.Fprintf(&out, "stopping together, %s\n", showStopping(stopping))
	}
	if found := s.machine.Findings(); found != nil {
		fmt.Fprintf(&out, "%s\n", found)
	}
	for _, r := range s.machine.GroupRestarts() {
		fmt.Fprintf(&out, "%s\n", outcome.Restart(r))
	}
	fmt.Fprintf(&out, "%s, live: %s\n", state, strings.Join(s.machine.Live(), " "))
	for _, t := range tasks {
		fmt.Fprintf(&out, "  %d %s: %s", t.Rank, t.Name, t.State)
		if t.Exit != nil {
			fmt.Fprintf(&out, ", %s", showExit(*t.Exit))
		}
		out.WriteString("\n")
	}
	return out.String()
}

func show(a lifecycle.Action) string {
	switch a := a.(type) {
	case lifecycle.Launch:
		if a.Launch > 0 {
			return fmt.Sprintf("  launch %s (rank %d), launch %d\n", a.Task.Name(), a.Task.Rank, a.Launch)
		}
		return fmt.Sprintf("  launch %s (rank %d)\n", a.Task.Name(), a.Task.Rank)
	case lifecycle.RestartGroup:
		text := fmt.Sprintf("  regroup: generation %d from process %d, after %s", a.Generation, a.First, a.After)
		if a.Requeue {
			text += ", pending again"
		}
		return text + "\n"
	case lifecycle.StopPlacing:
		return "  stop placing\n"
	case lifecycle.Capture:
		again := ""
		if a.Again > 0 {
			again = fmt.Sprintf(", and again after %s", a.Again)
		}
		return fmt.Sprintf("  capture %s: %s%s\n", strings.Join(a.Tasks, " "), a.For, again)
	case lifecycle.Stop:
		return fmt.Sprintf("  stop %s: %s\n", strings.Join(a.Tasks, " "), a.Why)
	case lifecycle.HostRequest:
		b, err := json.Marshal(a.Request)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("  %s %s\n", a.Activity, b)
	case lifecycle.SealTasks:
		return fmt.Sprintf("  seal %s\n", strings.Join(a.Tasks, " "))
	case lifecycle.StopSilentTasks:
		return fmt.Sprintf("  silence %s\n", strings.Join(a.Tasks, " "))
	case lifecycle.Detached:
		return show(a.Action)
	case lifecycle.NotifyStopping:
		return fmt.Sprintf("  tell %s\n", showStopping(a.Stopping))
	case lifecycle.StartTimer:
		return fmt.Sprintf("  start timer %s %s\n", a.Timer, a.After)
	case lifecycle.StopTimer:
		return fmt.Sprintf("  stop timer %s\n", a.Timer)
	case lifecycle.Release:
		return "  release\n"
	case lifecycle.Finish:
		return showResult(a.Result)
	case lifecycle.Notify:
		return showNotify(a)
	default:
		return fmt.Sprintf("  %T\n", a)
	}
}

func showNotify(a lifecycle.Notify) string {
	n := outcome.Hangs("r", a.Silent, a.Findings)
	if a.Result != nil {
		r := *a.Result
		r.Message = outcome.Sentence(&r)
		n = outcome.Ended("r", &r)
	}
	return fmt.Sprintf("  notify %d: %s\n", a.Number, n.Text)
}

func showStopping(s spec.Stopping) string {
	if n := s.Notice; n != nil {
		after := "the run ends"
		if n.Requeue {
			after = "the run is pending again"
		}
		text := fmt.Sprintf("%d: notice until %s, then %s: %s", s.Seq, n.Deadline.Sub(scriptStart), after, n)
		if s.Notice = nil; s.Stop {
			text += "; " + showStopping(s)
		}
		return text
	}
	if !s.Stop {
		return fmt.Sprintf("%d: go on", s.Seq)
	}
	text := fmt.Sprintf("%d: %s", s.Seq, s)
	if !s.Deadline.IsZero() {
		text += ", until " + s.Deadline.Sub(scriptStart).String()
	}
	return text
}

func showResult(r spec.RunResult) string {
	var out strings.Builder
	fmt.Fprintf(&out, "  finish: %s", r.Verdict)
	if r.ErrorType != "" {
		fmt.Fprintf(&out, " with %s", r.ErrorType)
	}
	fmt.Fprintf(&out, ", exit code %d", r.ExitCode)
	if r.Generation > 0 {
		fmt.Fprintf(&out, ", generation %d", r.Generation)
	}
	if f := r.FirstFailure; f != nil {
		fmt.Fprintf(&out, ", first failure %s", f.Task)
	}
	if len(r.Stragglers) > 0 {
		fmt.Fprintf(&out, ", stragglers %s", strings.Join(r.Stragglers, " "))
	}
	out.WriteString("\n")
	if r.Stopping != nil {
		fmt.Fprintf(&out, "  stopped %s\n", showStopping(*r.Stopping))
	}
	r.Message = outcome.Sentence(&r)
	lines := outcome.Lines(&r, outcome.Options{})
	if r.Message != "" {
		lines = append(strings.Split(r.Message, "\n"), lines...)
	}
	for _, line := range lines {
		fmt.Fprintf(&out, "  | %s\n", line)
	}
	for _, slow := range r.Slow {
		fmt.Fprintf(&out, "  slow: %s\n", slow)
	}
	for _, t := range r.Tasks {
		fmt.Fprintf(&out, "  %d %s:", t.Rank, t.Name)
		if t.Exit == nil {
			out.WriteString(" no exit")
		} else {
			fmt.Fprintf(&out, " %s", showExit(*t.Exit))
		}
		if t.Restarts > 0 {
			fmt.Fprintf(&out, ", %d restarts", t.Restarts)
		}
		if t.Failed {
			out.WriteString(", FAILED")
		}
		if t.StacksFile != "" {
			fmt.Fprintf(&out, ", stacks %s", t.StacksFile)
		}
		if t.Value != nil {
			fmt.Fprintf(&out, ", value %s", t.Value)
		}
		out.WriteString("\n")
		for _, e := range t.Exits {
			fmt.Fprintf(&out, "      process %d: %s\n", e.Restart, showExit(e))
		}
	}
	return out.String()
}

func showExit(e spec.Exit) string {
	s := fmt.Sprintf("exit %d", e.ExitCode)
	if e.Signal != "" {
		s = e.Signal
	}
	return s + " " + string(e.Cause)
}
