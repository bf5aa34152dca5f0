package lifecycle

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// FuzzMachine feeds random events to a machine, possible and impossible ones, and checks what the
// workflow relies on.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{})
	for seed := range byte(24) {
		// Each seed is a plain run with a different spec, and a few events of every kind.
		script := []byte{seed, seed * 7, seed * 3, 2, 2, seed}
		for i := range byte(40) {
			script = append(script, i*11+seed, i*5, i*3+seed, seed+i)
		}
		f.Add(script)
	}
	scripts.Fuzz(f, 1000, func(t *testing.T, data scripts.Bytes) {
		w := newWorld(t, data)
		for w.left() {
			w.step(w.event())
			w.handOver()
		}
		w.finish()
	})
}

// world is everything that a machine acts on, with checks of what it must never do.
type world struct {
	t *testing.T
	scripts.Bytes

	spec          *spec.RunSpec
	machine, twin *Machine

	launches map[string]int  // the latest launch by task
	live     map[string]bool // its activity is open
	stopped  map[string]bool // tasks that were asked to stop
	timers   map[Timer]bool
	exits    map[string][]spec.Exit

	stops, releases, finishes int
	captures                  int
	sealed                    bool
	// told is the latest state of a stop together that the hosts received. grace reports whether
	// the grace of such a stop has passed.
	told              spec.Stopping
	grace             bool
	result            spec.RunResult
	generation, first int
	// placing: Regroup requires an answer.
	placing bool
}

func newWorld(t *testing.T, data scripts.Bytes) *world {
	w := &world{
		t: t, Bytes: data,
		launches: map[string]int{}, live: map[string]bool{}, stopped: map[string]bool{},
		timers: map[Timer]bool{}, exits: map[string][]spec.Exit{},
	}
	flags := w.Byte()
	s := &spec.RunSpec{Command: []string{"true"}, AutoRestart: flags&1 != 0}
	if flags&2 != 0 {
		s.OnFailure = spec.OnFailureContinue
	}
	if flags&4 != 0 {
		s.DependenceOnChief = new(bool)
	}
	if flags&8 != 0 {
		s.Timeout = spec.DurationOf(time.Duration(w.Byte()%4) * time.Second)
	}
	if flags&16 != 0 {
		s.MaxRunTime = spec.DurationOf(time.Minute)
	}
	if flags&32 != 0 {
		s.ChiefGrace = spec.DurationOf(0)
	}
	if flags&64 != 0 {
		s.Tasks = append(s.Tasks, spec.TaskGroup{Type: "chief"})
	}
	if flags&128 != 0 {
		s.RestartScope = spec.RestartScopeGroup
		if limit := int(w.Byte() % 4); limit > 0 {
			s.MaxRestarts = &limit
		}
	}
	if how := w.Byte(); how != 0 {
		s.StopTogether = spec.StopTogether{Grace: spec.DurationOf(time.Duration(how%4) * time.Second), IgnoreLiveTasks: how&4 != 0}
		if how&8 != 0 {
			s.StopTogether.CleanErrors = []string{}
		}
	}
	if how := w.Byte(); how%2 != 0 {
		s.Silence, s.OnSilence = "1m", []spec.OnSilence{spec.OnSilenceReport, spec.OnSilenceStop}[how/2%2]
	} else if how&2 != 0 {
		s.RequeueOn = []spec.RequeueOn{spec.RequeueOnTimeout, spec.RequeueOnHostLost}
		s.NoticeSignal = "SIGUSR1"
	}
	workers, ps := int(w.Byte()%4)+1, int(w.Byte()%3)
	s.Tasks = append(s.Tasks, spec.TaskGroup{Type: "worker", Count: &workers})
	if ps > 0 {
		s.Tasks = append(s.Tasks, spec.TaskGroup{Type: "ps", Count: &ps})
	}
	w.spec = s.WithDefaults()
	w.machine = New(w.spec, w.spec.TaskList())
	w.twin = New(w.spec, w.spec.TaskList())
	return w
}

func (w *world) left() bool { return len(w.Bytes) > 0 }

var fuzzTasks = []string{"worker-0", "worker-1", "worker-2", "worker-3", "ps-0", "ps-1", "chief-0", "chief-1", "evaluator-0", "nobody-9"}

func (w *world) task() string { return fuzzTasks[int(w.Byte())%len(fuzzTasks)] }

func (w *world) tasks() []string {
	var names []string
	for range w.Byte() % 4 {
		names = append(names, w.task())
	}
	return names
}

func (w *world) event() Event {
	switch w.Byte() % 19 {
	case 17:
		how := w.Byte()
		return GiveNotice{
			From:   []spec.NoticeFrom{spec.NoticeFromDrain, spec.NoticeFromOperator}[how%2],
			Reason: "room", At: time.Unix(int64(how), 0).UTC(), Within: time.Duration(w.Byte()%8) * time.Second, Requeue: how%4 != 0,
		}
	case 18:
		return Silent{SilentRequest: spec.SilentRequest{Tasks: w.tasks(), Generation: w.generation - int(w.Byte())%5/4}}
	case 16:
		return w.stopRequest()
	case 0:
		return Begin{}
	case 1:
		if w.Byte()%4 == 0 {
			return Resumed{Elapsed: time.Second}
		}
		return Begin{Tasks: int(w.Byte() % 4)}
	case 2, 3, 4, 5, 6:
		return w.ended(w.task())
	case 7:
		return TimerFired{Timer: []Timer{TimerChiefGrace, TimerTimeout, TimerMaxRunTime, TimerTogether, "another", TimerNotice, TimerErrorGrace}[w.Byte()%7]}
	case 8:
		if w.Byte()%4 == 0 {
			return Cancel{Reason: "why not"}
		}
		return w.update()
	case 9:
		return TerminateTasks{spec.TaskRequest{Tasks: w.tasks()}}
	case 10:
		if w.Byte()%4 == 0 {
			return TerminateAll{}
		}
		return Begin{}
	case 11:
		return RestartTasks{spec.TaskRequest{Tasks: w.tasks()}}
	case 12, 13:
		return StartTask{spec.StartTaskRequest{Task: w.task(), New: true}}
	case 14:
		switch w.Byte() % 8 {
		case 0:
			return PlacementFailed{Message: "no room"}
		case 1, 2:
			return w.captured()
		case 3:
			return HostGivenUp{Host: w.task()}
		}
		return Begin{Elapsed: time.Duration(w.Byte()%4) * time.Second}
	default:
		return w.releasedEvent()
	}
}

// update returns a random update's event, valid or not.
func (w *world) update() Event {
	input, err := json.Marshal(map[string]any{
		"task": w.task(), "tasks": w.tasks(), "signal": "SIGUSR1", "within": "2s", "key": "k", "host": "a",
		"generation": w.generation - int(w.Byte())%5/4,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	u := Updates[int(w.Byte())%len(Updates)]
	e, _ := u.Event(func(q any) error { return json.Unmarshal(input, q) }, time.Unix(int64(w.Byte()), 0).UTC())
	return e
}

// captured returns an answer to a capture, which may not have been requested.
func (w *world) captured() Captured {
	e := Captured{For: []spec.Cause{spec.CauseTimeout, spec.CauseCollateral, spec.CauseSilence, spec.CauseOrigin}[w.Byte()%4], Files: map[string]string{w.task(): "/stacks"}}
	var stacks []stacktree.Tree
	for range w.Byte() % 4 {
		function := []string{"all_reduce", "load"}[w.Byte()%2]
		stacks = append(stacks, stacktree.Of(int(w.Byte()%6), stacktree.Stack{{Kind: stacktree.Python, Function: function, File: "train.py"}}))
	}
	e.Stacks = stacktree.Merge(stacks...)
	return e
}

// stopRequest returns a task's or operator's request, with or without an error.
func (w *world) stopRequest() StopTogether {
	e := StopTogether{At: time.Unix(int64(w.Byte()), 0)}
	how := w.Byte()
	if how&1 != 0 {
		e.Task, e.Generation = w.task(), w.generation-int(how%5)/4
	}
	if how&2 != 0 {
		e.Error = &spec.TogetherError{Kind: []string{"", "StopIteration", "ValueError"}[how%3], Message: "words"}
	}
	if how&4 != 0 {
		e.Key = string('a' + rune(how%4))
	}
	return e
}

func (w *world) ended(task string) TaskEnded {
	e := TaskEnded{Task: task, Generation: w.generation, Launch: w.launches[task]}
	how := w.Byte()
	if how&128 != 0 {
		e.Launch += int(how%3) - 1 // sometimes of another launch
		if how%5 == 0 {
			e.Generation--
		}
	}
	causes := []spec.Cause{
		spec.CauseCompleted, spec.CauseOrigin, spec.CauseCollateral, spec.CauseOperator,
		spec.CauseTimeout, spec.CauseHostLost, "", spec.CauseSilence,
	}
	cause := causes[how%8]
	if how&64 != 0 && how%8 == 6 {
		return e // no exit
	}
	exit := spec.Exit{Restart: w.first + len(w.exits[task]), Cause: cause, BootNanos: int64(w.Byte() % 4)}
	if b := w.Byte(); b&1 != 0 {
		at := time.Unix(int64(b>>4), 0).UTC()
		exit.Printed = &spec.PrintedError{Kind: "python", Line: "E", LostPeer: b&2 != 0, Survivable: b&4 != 0, After: at, By: at.Add(time.Second)}
		exit.Ended = at.Add(2 * time.Second)
		e.Await = b&8 != 0
	}
	if cause != spec.CauseCompleted {
		exit.ExitCode = int(how%5) - 2
		exit.Reported = how&32 != 0
		exit.Message = "words"
	}
	if how&16 != 0 {
		w.exits[task] = append(w.exits[task], exit)
	}
	e.Exit = &exit
	return e
}

func (w *world) releasedEvent() Released {
	r := Released{Exits: map[string][]spec.Exit{}, Values: map[string][]byte{}, Hosts: map[string]string{}}
	for _, task := range fuzzTasks {
		r.Exits[task] = slices.Clone(w.exits[task])
		r.Hosts[task] = []string{"", "a", "b"}[w.Byte()%3]
		if w.Byte()%4 == 0 {
			r.Values[task] = []byte{'1', w.Byte()}
		}
	}
	return r
}

// step applies one event, and checks all invariants.
func (w *world) step(e Event) {
	before := len(w.machine.Live())
	refused := w.machine.Check(e) != nil
	actions := w.machine.Step(e)
	if again := w.twin.Step(e); !reflect.DeepEqual(actions, again) {
		w.t.Fatalf("%#v: not deterministic:\n%#v\n%#v", e, actions, again)
	}
	if refused && len(actions) > 0 {
		w.t.Fatalf("%#v was refused and met all the same: %#v", e, actions)
	}
	if _, ok := e.(Begin); ok {
		w.placing = false
	}
	if end, ok := e.(TaskEnded); ok && w.launches[end.Task] == end.Launch && w.generation == end.Generation && w.live[end.Task] {
		w.live[end.Task] = false
	}
	if timer, ok := e.(TimerFired); ok {
		w.grace = w.grace || timer.Timer == TimerTogether && w.timers[TimerTogether]
		delete(w.timers, timer.Timer)
	}
	if start, ok := e.(StartTask); ok && !refused {
		if len(actions) != 1 {
			w.t.Fatalf("%s was to be started: %#v", start.Task, actions)
		}
		if _, ok := actions[0].(Launch); !ok {
			w.t.Fatalf("%s was to be started: %#v", start.Task, actions)
		}
	}
	for _, a := range actions {
		w.carryOut(a)
	}
	if s := w.machine.Stopping(); !w.machine.anyLive() && !reflect.DeepEqual(s.Notice, w.told.Notice) && s.Seq > w.told.Seq {
		w.told = s // hosts receive it with the next generation
	}
	w.checkAnswer(e, refused)
	if w.finishes > 0 && before > 0 {
		w.t.Fatal("finished with tasks alive")
	}
	w.checkStatus()
}

// handOver continues with another machine at quiet moments, as if the run had continued as new.
// That machine must give the same answers as the first one, which remains as the twin.
func (w *world) handOver() {
	if !w.machine.Quiet() || w.Byte()%4 != 0 {
		return
	}
	b, err := json.Marshal(w.machine.State())
	if err != nil {
		w.t.Fatal(err)
	}
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		w.t.Fatal(err)
	}
	w.machine = Resume(w.spec, w.spec.TaskList(), s)
	live, timers := map[string]bool{}, map[Timer]bool{}
	for _, a := range w.machine.Step(Resumed{}) {
		switch a := a.(type) {
		case Launch:
			if name := a.Task.Name(); live[name] || a.Launch != w.launches[name] || a.Generation != w.generation {
				w.t.Fatalf("%#v", a)
			}
			live[a.Task.Name()] = true
		case StartTimer:
			timers[a.Timer] = true
		default:
			w.t.Fatalf("%#v", a)
		}
	}
	for _, name := range fuzzTasks {
		if live[name] != w.live[name] {
			w.t.Fatalf("%s was taken over: %v, and it lives: %v", name, live[name], w.live[name])
		}
	}
	if !reflect.DeepEqual(timers, w.timers) {
		w.t.Fatalf("timers %v, and before %v", timers, w.timers)
	}
	if again := w.machine.Step(Resumed{}); len(again) > 0 {
		w.t.Fatalf("resumed twice: %#v", again)
	}
}

func (w *world) carryOut(a Action) {
	t := w.t
	if w.finishes > 0 {
		t.Fatalf("%#v after Finish", a)
	}
	switch a := a.(type) {
	case Launch:
		name := a.Task.Name()
		last, known := w.launches[name]
		switch {
		case w.stops > 0 || w.releases > 0 || w.sealed || w.placing || w.told.Stop:
			t.Fatalf("%s launched while the run was ending", name)
		case w.live[name]:
			t.Fatalf("%s launched twice", name)
		case a.Generation != w.generation:
			t.Fatalf("%s launched in generation %d of %d", name, a.Generation, w.generation)
		case known && a.Launch != last+1, !known && a.Launch != 0:
			t.Fatalf("%s: launch %d after %d", name, a.Launch, last)
		}
		w.launches[name], w.live[name] = a.Launch, true
	case Stop:
		w.stops++
		w.allLive(a.Tasks)
		for _, name := range a.Tasks {
			w.stopped[name] = true
		}
		for _, name := range fuzzTasks {
			if w.live[name] && !w.stopped[name] {
				t.Fatalf("%s goes on while the others are stopped", name)
			}
		}
		if w.stops > 1 || w.releases > 0 {
			t.Fatal("stopped twice")
		}
	case RestartGroup:
		w.noneLive()
		if w.told.Stop {
			t.Fatal("the group is started again while it is to stop together")
		}
		if a.Requeue != w.machine.Pending() || a.Requeue && len(w.timers) > 0 || w.machine.Notice() != nil {
			t.Fatalf("%#v, with timers %v", a, w.timers)
		}
		if w.releases > 0 || w.placing || a.Generation != w.generation+1 || a.First <= w.first || a.After <= 0 {
			t.Fatalf("%#v", a)
		}
		w.placing, w.generation, w.first, w.stops = true, a.Generation, a.First, 0
		w.launches, w.stopped = map[string]int{}, map[string]bool{}
	case StopPlacing:
		if !w.placing {
			t.Fatal("nothing is being placed")
		}
	case Capture:
		w.allLive(a.Tasks)
		if a.For != spec.CauseSilence && a.For != spec.CauseOrigin {
			w.captures++
		}
		if w.captures > 1 || w.stops > 0 || a.For == spec.CauseSilence && w.spec.OnSilence == "" {
			t.Fatalf("captured for %s twice, or when it was too late", a.For)
		}
	case HostRequest:
		w.allLive(a.Tasks)
		if a.Activity == "RestartTasks" && (w.stops > 0 || w.sealed || w.told.Stop) {
			t.Fatal("restarted while the run was ending")
		}
	case SealTasks:
		w.allLive(a.Tasks)
		w.sealed = true
	case NotifyStopping:
		news := !reflect.DeepEqual(a.Stopping.Notice, w.told.Notice)
		if a.Stopping.Seq != w.told.Seq+1 || (a.Stopping.Stop == w.told.Stop) != news || w.stops > 0 || w.releases > 0 {
			t.Fatalf("%#v after %#v", a, w.told)
		}
		if w.told.Stop && !a.Stopping.Stop {
			t.Fatalf("cleared: %#v", a)
		}
		w.told = a.Stopping
	case StartTimer:
		if w.timers[a.Timer] || a.After <= 0 || w.stops > 0 || w.releases > 0 {
			t.Fatalf("%#v", a)
		}
		w.timers[a.Timer] = true
		if a.Timer == TimerTogether && !w.told.Stop {
			t.Fatal("a grace without a stop")
		}
	case StopTimer:
		if !w.timers[a.Timer] {
			t.Fatalf("%#v", a)
		}
		delete(w.timers, a.Timer)
	case Release:
		if w.releases++; w.releases > 1 {
			t.Fatal("released twice")
		}
		if len(w.timers) > 0 {
			t.Fatalf("released with timers: %v", w.timers)
		}
		w.noneLive()
	case Finish:
		w.finishes++
		w.result = a.Result
		if w.releases == 0 {
			t.Fatal("finished without Release")
		}
		w.noneLive()
	}
}

// checkAnswer checks that the answer to a request to stop is the state that the hosts received.
func (w *world) checkAnswer(e Event, refused bool) {
	s := w.machine.Stopping()
	if !reflect.DeepEqual(s, w.told) {
		w.t.Fatalf("%#v: %#v, and the hosts know %#v", e, s, w.told)
	}
	if e, ok := e.(StopTogether); ok && !refused && !s.Stop {
		w.t.Fatalf("%#v: %#v", e, s)
	}
}

func (w *world) allLive(names []string) {
	if len(names) == 0 {
		w.t.Fatal("an action for nobody")
	}
	for i, name := range names {
		if !w.live[name] || slices.Contains(names[:i], name) {
			w.t.Fatalf("an action for %v", names)
		}
	}
}

func (w *world) noneLive() {
	for _, name := range fuzzTasks {
		if w.live[name] {
			w.t.Fatalf("%s is alive", name)
		}
	}
}

func (w *world) checkStatus() {
	state, tasks := w.machine.Status()
	live := w.machine.Live()
	for i, s := range tasks {
		switch {
		case i > 0 && s.Rank <= tasks[i-1].Rank:
			w.t.Fatalf("%s has rank %d at place %d", s.Name, s.Rank, i)
		case slices.Contains(live, s.Name) != w.live[s.Name]:
			w.t.Fatalf("%s: live %v", s.Name, live)
		case w.live[s.Name] != (s.State == spec.TaskRunning || s.State == spec.TaskStopping):
			w.t.Fatalf("%s is %s", s.Name, s.State)
		}
	}
	for _, name := range live {
		if w.machine.named[name].absent {
			w.t.Fatalf("%s lives, which this generation does not have", name)
		}
	}
	if (state == spec.RunEnded) != w.machine.Done() || w.machine.Done() != (w.finishes == 1) {
		w.t.Fatalf("the run is %s", state)
	}
	if len(live) == 0 && w.releases == 0 && state != spec.RunPlacing && state != spec.RunRestarting {
		w.t.Fatalf("nothing lives, nothing is released, and the run is %s", state)
	}
}

// finish finishes the run in the shortest way, and checks the verdict.
func (w *world) finish() {
	w.step(Cancel{})
	for _, name := range w.machine.Live() {
		w.step(w.endedLatest(name))
	}
	w.step(w.releasedEvent())
	if w.finishes != 1 {
		w.t.Fatal("the run does not finish")
	}
	for _, name := range fuzzTasks {
		if _, launched := w.launches[name]; launched && !w.machine.named[name].absent && !slices.ContainsFunc(w.result.Tasks, func(r spec.TaskResult) bool { return r.Name == name }) {
			w.t.Fatalf("%s is not in the result", name)
		}
	}
	w.checkResult()
}

func (w *world) endedLatest(name string) TaskEnded {
	e := w.ended(name)
	e.Launch, e.Generation = w.launches[name], w.generation
	return e
}

func (w *world) checkResult() {
	t, r := w.t, w.result
	if _, err := json.Marshal(r); err != nil {
		t.Fatal(err)
	}
	if (r.ExitCode == 0) != (r.Verdict == spec.VerdictSucceeded) || r.ExitCode < 0 {
		t.Fatalf("%s with exit code %d", r.Verdict, r.ExitCode)
	}
	failed := r.Verdict == spec.VerdictFailed || r.Verdict == spec.VerdictTimedOut
	if failed != (r.ErrorType != "") || !failed && r.Verdict != spec.VerdictSucceeded && r.Verdict != spec.VerdictCancelled && r.Verdict != spec.VerdictPreempted {
		t.Fatalf("%s with error type %q", r.Verdict, r.ErrorType)
	}
	if (r.Verdict == spec.VerdictSucceeded) != (outcome.Sentence(&r) == "") {
		t.Fatalf("%s without a word", r.Verdict)
	}
	w.checkStopped()
	failures := 0
	for _, task := range r.Tasks {
		if task.Failed {
			failures++
		}
	}
	if f := r.FirstFailure; f != nil {
		switch f.Cause {
		case spec.CauseCompleted, spec.CauseOperator, spec.CausePreempted:
			if f.Cause == spec.CausePreempted && f.Reported {
				break
			}
			t.Fatalf("%s failed by %s", f.Task, f.Cause)
		case spec.CauseTimeout:
			if !f.Reported {
				t.Fatalf("%s failed because its time was over", f.Task)
			}
		case spec.CauseCollateral:
			if w.stopped[f.Task] && !f.Reported && f.Evidence == "" {
				t.Fatalf("%s failed because we stopped it", f.Task)
			}
		}
	}
	switch {
	case (failures > 0) != (r.FirstFailure != nil):
		t.Fatalf("%d failures, first %v", failures, r.FirstFailure)
	case failures > 0 && !failed:
		t.Fatalf("%s with %d failures", r.Verdict, failures)
	}
}

// checkStopped checks that the result includes the stop, and that its error, if it is a
// failure, is an error of the run.
func (w *world) checkStopped() {
	t, r := w.t, w.result
	if w.told.Stop != (r.Stopping != nil) || r.Stopping != nil && !reflect.DeepEqual(*r.Stopping, w.told) {
		t.Fatalf("the hosts know %#v, and the result has %#v", w.told, r.Stopping)
	}
	if len(r.Stragglers) > 0 && !w.told.Stop {
		t.Fatalf("stragglers without a stop: %v", r.Stragglers)
	}
	switch {
	case !w.told.Stop:
	case w.told.Error != nil && !w.told.Clean:
		if r.Verdict != spec.VerdictFailed || r.ErrorType != spec.ErrSubprocess && r.ErrorType != spec.ErrHostLost {
			t.Fatalf("stopped by an error: %s with %s", r.Verdict, r.ErrorType)
		}
	case len(r.Stragglers) > 0 && !w.spec.StopTogether.IgnoreLiveTasks:
		if r.ExitCode == 0 {
			t.Fatalf("stragglers %v, and %s", r.Stragglers, r.Verdict)
		}
	}
}
