package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// A task writes this many lines, and a coordinator schedules this many closures.
	lines    = 50_000
	closures = 5_000
	// endBound is the maximum time a run may take to finish once everything is healed.
	endBound = 3 * time.Minute
	// exitMachinery is the exit code of a launcher without a server.
	exitMachinery = 125
)

// run is a run in a round.
type run struct {
	*starter.Run
	name    string
	ledger  string
	spec    *spec.RunSpec
	stopped bool
	// coordinated receives the run's coordinator's result, if any.
	coordinated chan error
	// launcher starts a run on this machine only, with the state directory state.
	launcher *harness.Process
	state    string
}

// tasks returns n tasks with a role, pinned to hosts if given.
func tasks(typ, role string, n int, hosts ...int) spec.TaskGroup {
	g := spec.TaskGroup{Type: typ, Env: spec.EnvOf(map[string]string{roleVar: role})}
	if len(hosts) == 0 {
		g.Count = &n
	}
	for i := range n {
		if len(hosts) > 0 {
			g.Addresses = append(g.Addresses, HostName(hosts[i%len(hosts)]))
		}
	}
	return g
}

// mix returns a round's runs.
func mix() map[string]*spec.RunSpec {
	failures := 50
	return map[string]*spec.RunSpec{
		"chief": {AutoRestart: true, Tasks: []spec.TaskGroup{
			tasks("chief", "sleep 7000", 1, 0), tasks("worker", "sleep 600000", 3, 1, 2, 0), tasks("ps", "sleep 600000", 1, 1),
		}},
		"group": {RestartScope: spec.RestartScopeGroup, MaxRestarts: &failures, Tasks: []spec.TaskGroup{
			tasks("worker", "step 60", 1, 1), tasks("peer", "step 60", 2),
		}},
		"restart":  {AutoRestart: true, Tasks: []spec.TaskGroup{tasks("worker", "flaky 3", 3)}},
		"barrier":  {Tasks: []spec.TaskGroup{tasks("worker", "step 80", 3, 0, 1, 2)}},
		"closures": {AutoRestart: true, Tasks: []spec.TaskGroup{tasks("worker", "serve 2", 3, 0, 1, 2)}},
		"lines":    {Tasks: []spec.TaskGroup{tasks("worker", fmt.Sprintf("lines %d", lines), 2, 0, 2)}},
		"train":    trained(),
		"hosts":    onHosts(),
		"launcher": {Tasks: []spec.TaskGroup{tasks("worker", "sleep 6000", 2)}},
	}
}

// prepare returns a run for this round that has yet to start.
func (s *stage) prepare(t *testing.T, name string, sp *spec.RunSpec) *run {
	self := must.Get(os.Executable())(t)
	id := fmt.Sprintf("drill-%d-%d-%s", s.seed, s.round, name)
	r := &run{name: id, spec: sp, ledger: filepath.Join(s.dir, id)}
	require.NoError(t, os.Mkdir(r.ledger, 0o700))
	sp.Command = []string{self}
	env := map[string]string{ledgerVar: r.ledger, markVar: s.mark}
	if sp.GPUsPerTask != nil {
		env[gpuVar] = "1"
	}
	sp.Env = spec.EnvOf(env)
	grace := spec.Duration(2 * time.Second)
	sp.Stop.Grace = &grace
	sp.OnDisconnect = spec.OnDisconnectStop(stopAfter)
	if s.round%2 == 0 || sp.Hosts.Count != "" { // two tasks replace a lost host sooner
		sp.OnDisconnect = spec.OnDisconnectWithOutage(stopAfter, outage)
	}
	return r
}

// launch starts a round's runs.
func (s *stage) launch(t *testing.T) []*run {
	var runs []*run
	for name, sp := range mix() {
		r := s.prepare(t, name, sp)
		runs = append(runs, r)
		if name == "launcher" {
			r.launchHere(t, s)
			continue
		}
		r.Run = must.Get(starter.Start(t.Context(), s.client, sp, starter.Options{ID: r.name}))(t)
		if name == "closures" {
			r.coordinated = make(chan error, 1)
			go func() { r.coordinated <- coordinate(t.Context(), r.Run) }()
		}
	}
	return runs
}

// launchHere starts the run with a launcher and a separate host worker.
func (r *run) launchHere(t *testing.T, s *stage) {
	b := must.Get(json.Marshal(r.spec))(t)
	file := filepath.Join(r.ledger, "spec.json")
	require.NoError(t, os.WriteFile(file, b, 0o600))
	r.state = filepath.Join(s.dir, "launcher")
	r.launcher = harness.Start(t, r.ledger, harness.Env(s.dir), harness.Clusterrun(t), "run",
		"--address", s.server.Address, "--state-dir", r.state, "--id", r.name, file)
	r.Run = starter.Get(s.client, r.name, "")
}

// coordinate schedules closures and checks their values.
func coordinate(ctx context.Context, r *starter.Run) error {
	c, err := clustercoordinator.New(ctx, r)
	if err != nil {
		return err
	}
	defer c.Close()
	values := make([]*clustercoordinator.RemoteValue, closures)
	for i := range values {
		if values[i], err = c.Schedule(ctx, "square", i); err != nil {
			return fmt.Errorf("schedule closure %d: %w", i, err)
		}
	}
	if err := c.Join(ctx); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	for i, v := range values {
		n, err := clustercoordinator.Get[int](ctx, v)
		if err != nil || n != i*i {
			return fmt.Errorf("the square of %d is %d: %w", i, n, err)
		}
	}
	return nil
}

// finish waits until the run has finished and returns its faults.
func (r *run) finish(t *testing.T, s *stage) []string {
	ctx, cancel := context.WithTimeout(t.Context(), endBound)
	defer cancel()
	var found []string
	var unfinished error
	if r.coordinated != nil {
		select {
		case unfinished = <-r.coordinated:
		case <-time.After(endBound):
			unfinished = fmt.Errorf("its closures are not done after %s", endBound)
		}
		r.stopped = true
		if err := r.Cancel(ctx); err != nil {
			var ended *starter.EndedError
			if !errors.As(err, &ended) {
				found = append(found, fmt.Sprintf("%s: cancel: %v", r.name, err))
			}
		}
	}
	if r.launcher != nil {
		if !r.awaitLauncher() {
			found = append(found, r.name+": the launcher does not end")
		}
		found = append(found, r.runNext(ctx, t, s)...)
	}
	result, err := r.Wait(ctx)
	var terminated *starter.TerminatedError
	var missing *starter.NotFoundError
	switch {
	case r.stopped && (errors.As(err, &terminated) || errors.As(err, &missing)):
		return found // the launcher was killed and cannot report more
	case s.serverless && errors.As(err, &missing) && r.launcher != nil && r.launcher.ExitCode() == exitMachinery:
		// It did not find a server, and reported that.
		if names, _ := filepath.Glob(filepath.Join(r.ledger, "page.*")); len(names) > 0 {
			found = append(found, fmt.Sprintf("%s: there is no such run, and it had the processes %v", r.name, names))
		}
		return found
	case result == nil:
		return append(found, fmt.Sprintf("%s: it does not end: %v", r.name, err))
	}
	pages, err := readLedger(r.ledger)
	if err != nil {
		return append(found, err.Error())
	}
	_, _, givesUp := r.spec.TwoBounds(0)
	givesUp = givesUp || len(s.lost) > 0
	first, faulty := result.FirstFailure, s.mayLose()
	lostHost := givesUp && first != nil && first.Cause == spec.CauseHostLost && faulty[first.Host]
	known := report{
		run: r.name, result: *result, pages: pages, stopped: r.stopped, faulty: faulty, killed: s.killed, full: s.full,
		givesUp: givesUp, notices: s.notices, sick: s.sick,
	}
	if unfinished != nil && !refused(known) && !lostHost {
		found = append(found, fmt.Sprintf("%s: the coordinator: %v", r.name, unfinished))
	}
	found = append(found, check(known)...)
	found = append(found, r.checkLines(t, s, pages, exitsOf(*result))...)
	if len(found) > 0 {
		found = append(found, account(known))
	}
	return found
}

// runNext starts up to 5 runs in the same state directory; the first cleans up after a killed
// launcher. No run may wait long for that.
func (r *run) runNext(ctx context.Context, t *testing.T, s *stage) []string {
	for i := range 5 {
		id := fmt.Sprintf("%s-next%d", r.name, i)
		if code, _, text := s.command(t, "run", "--address", s.server.Address, "--state-dir", r.state, "--id", id, "--", "true"); code != 0 {
			return []string{fmt.Sprintf("%s: the next run exits with %d: %s", r.name, code, text)}
		}
		known, err := r.Summary(ctx)
		var missing *starter.NotFoundError
		switch {
		case err != nil && !errors.As(err, &missing):
			return []string{fmt.Sprintf("%s: is it open? %v", r.name, err)}
		case !known.Open:
			return nil
		}
	}
	return nil
}

// awaitLauncher reports whether the launcher exits in time.
func (r *run) awaitLauncher() bool {
	deadline := time.Now().Add(endBound)
	for !r.launcher.Exited() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
	return true
}

// inPipe is the maximum that a process may have written before its killed supervisor read it, in
// bytes.
const inPipe = 64 << 10

// checkLines compares the output of logs with the lines that the programs wrote.
func (r *run) checkLines(t *testing.T, s *stage, pages []page, exits map[int]spec.Exit) []string {
	var found []string
	want := map[string]int{}
	for _, p := range pages {
		if p.lines > 0 {
			key := fmt.Sprintf("%s %d", p.task, p.number)
			want[key] = p.lines
			if exits[p.pid].Cause == spec.CauseHostLost {
				want[key] -= inPipe / len(fmt.Sprintf("%s %d\n", key, p.lines))
			}
		}
	}
	if len(want) == 0 {
		return nil
	}
	read := lineReader{full: s.full, got: map[string]int{}, torn: map[string]bool{}}
	for task := range taskNames(pages) {
		code, out, errText := s.command(t, "logs", "--address", s.server.Address, "--stdout", r.name, task)
		if code != 0 {
			found = append(found, fmt.Sprintf("%s: logs exits with %d: %s", r.name, code, errText))
		}
		for line := range strings.Lines(out) {
			if at := strings.Index(line, "]:"); at >= 0 {
				line = line[at+2:]
			}
			if wrong := read.line(task, line); wrong != "" {
				found = append(found, r.name+": "+wrong)
				break
			}
		}
	}
	for key, n := range want {
		// Lines written after the last note are also printed.
		if read.got[key] < n {
			found = append(found, fmt.Sprintf("%s: of %d lines of %s logs prints %d", r.name, n, key, read.got[key]))
		}
	}
	return found
}

// lineReader counts the numbered lines printed by logs, by process.
type lineReader struct {
	// full reports whether a disk was full, which may have truncated the last line of a process.
	full bool
	got  map[string]int
	torn map[string]bool
}

// line processes a task's next line, and returns its fault, if any.
func (r *lineReader) line(task, line string) string {
	line = strings.TrimSpace(line)
	words := strings.Fields(line)
	if len(words) < 2 { // a line from an unknown process
		if r.full && strings.HasPrefix(task+" ", line) {
			return ""
		}
		return fmt.Sprintf("logs prints %q", line)
	}
	key := words[0] + " " + words[1]
	want := fmt.Sprintf("%s %d", key, r.got[key]+1)
	switch {
	case r.torn[key]:
		return fmt.Sprintf("after a torn line of %s logs prints %q", key, line)
	case line == want:
		r.got[key]++
	case r.full && strings.HasPrefix(want, line):
		r.torn[key] = true
	default:
		return fmt.Sprintf("after line %d of %s logs prints %q", r.got[key], key, line)
	}
	return ""
}

// taskNames are the tasks with pages.
func taskNames(pages []page) map[string]bool {
	names := map[string]bool{}
	for _, p := range pages {
		names[p.task] = true
	}
	return names
}
