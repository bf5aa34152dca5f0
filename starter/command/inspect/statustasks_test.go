package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// large returns a run of 400 tasks on two hosts. One task has failed and one is restarting.
func large() *starter.Status {
	s := &starter.Status{RunID: "big", Open: true, State: spec.RunRunning, Started: time.Now()}
	for i := range 400 {
		s.Tasks = append(s.Tasks, starter.TaskStatus{
			TaskStatus: spec.TaskStatus{Name: fmt.Sprintf("worker-%d", i), Type: "worker", Index: i, Rank: i, Host: []string{"a", "b"}[i/200], State: spec.TaskRunning},
			PID:        1000 + i,
		})
	}
	s.Tasks[7].State, s.Tasks[7].Exit = spec.TaskEnded, &spec.Exit{Cause: spec.CauseOrigin, ExitCode: 3}
	s.Tasks[300].NextStart, s.Tasks[300].Restarts = time.Unix(1, 0), 2
	return s
}

func TestStatusOfALargeRun(t *testing.T) {
	var out bytes.Buffer
	printStatus(&out, large(), false)
	_, text, _ := strings.Cut(out.String(), "\n")
	assert.Equal(t, `
400 tasks: 398 running, 1 restarting, 1 failed

HOST  TASKS  RUNNING  RESTARTING  FAILED
a     200    199      -           1
b     200    199      1           -

TASK        STATE       HOST  PID   RESTARTS  EXIT  CAUSE
worker-7    ended       a     1007  0         3     origin
worker-300  restarting  b     -     2         -     -
`, strings.ReplaceAll(text, "1300  2 ", "-     2 "))

	out.Reset()
	printStatus(&out, large(), true)
	assert.Equal(t, 403, strings.Count(out.String(), "\n"))
}

// The status shows the age of each process's last output, if known.
func TestStatusHasTheLastOutput(t *testing.T) {
	tasks := large().Tasks[:2]
	tasks[1].LastOutput = time.Now().Add(-10 * time.Minute)
	var out bytes.Buffer
	printTasks(&out, tasks)
	assert.Equal(t, `TASK      STATE    HOST  PID   RESTARTS  EXIT  CAUSE  LAST OUTPUT
worker-0  running  a     1000  0         -     -      -
worker-1  running  a     1001  0         -     -      10m0s ago
`, out.String())
}

// The status fits on a page for any number of hosts and failed tasks.
func TestStatusOfALargeFailureIsAPage(t *testing.T) {
	s := large()
	for i := range s.Tasks {
		s.Tasks[i].Host, s.Tasks[i].State = fmt.Sprintf("node-%03d", i), spec.TaskEnded
		s.Tasks[i].Exit = &spec.Exit{Cause: spec.CauseOOM, Signal: "SIGKILL"}
	}
	var out bytes.Buffer
	printStatus(&out, s, false)
	assert.Contains(t, out.String(), "400 tasks: 400 failed\n")
	assert.Contains(t, out.String(), "\nand 384 hosts more\n")
	assert.Contains(t, out.String(), "\nand 360 more; --failed, --on-host, --task and --all list them\n")
	assert.Less(t, strings.Count(out.String(), "\n"), 70)
}

func TestChoiceOfTasks(t *testing.T) {
	of := func(flags ...string) (names []string, err error) {
		var c taskChoice
		cmd := &cobra.Command{}
		c.flags(cmd)
		require.NoError(t, cmd.ParseFlags(flags))
		tasks, err := c.of(large())
		for _, t := range tasks {
			names = append(names, t.Name)
		}
		return names, err
	}
	for flags, want := range map[string]int{"": 400, "--all": 400, "--failed": 1, "--on-host b": 200, "--task worker": 400, "--task worker-3,worker-4": 2, "--on-host b --failed": 0} {
		names, err := of(strings.Fields(flags)...)
		assert.NoError(t, err)
		assert.Len(t, names, want, flags)
	}
	for flags, want := range map[string]string{
		"--on-host c":    "--on-host c: run big has no tasks there; it has tasks on a, b",
		"--on-host=":     "--on-host : run big has no tasks there",
		"--task ps":      "run big has no task, type, rank or host ps",
		"--task worker,": "run big has no task, type, rank or host ;",
	} {
		_, err := of(strings.Fields(flags)...)
		assert.ErrorContains(t, err, want, flags)
		assert.Equal(t, exitcode.Usage, cli.CodeOf(err))
	}
}

// The status includes the selected tasks' return values.
func TestStatusHasWhatTasksReturned(t *testing.T) {
	var out bytes.Buffer
	printStatus(&out, &starter.Status{
		RunID: "iris-1",
		Tasks: []starter.TaskStatus{{TaskStatus: spec.TaskStatus{Name: "worker-1", Rank: 1}}, {TaskStatus: spec.TaskStatus{Name: "worker-2", Rank: 2}}},
		Result: &spec.RunResult{Verdict: spec.VerdictSucceeded, Tasks: []spec.TaskResult{
			{Name: "worker-0", Rank: 0, Value: json.RawMessage("0")},
			{Name: "worker-1", Rank: 1, Value: json.RawMessage(`{"loss": 0.3}`)},
			{Name: "worker-2", Rank: 2, Exit: &spec.Exit{ValueFile: "/logs/2/result.json"}},
		}},
	}, true)
	assert.Contains(t, out.String(), "\nworker-1 returned {\"loss\":0.3}\nthe result of worker-2 is in /logs/2/result.json\n\n")
	assert.NotContains(t, out.String(), "worker-0")
}

// The status lists the facts before the tasks, and the stacks without the sentence that is
// already a fact.
func TestStatusHasTheFacts(t *testing.T) {
	s := large()
	s.Tasks = s.Tasks[300:301]
	s.Stacks = &stacktree.Findings{Total: 1, Sentence: "rank 0 is the only one that is not in barrier", Classes: []stacktree.Class{{Count: 1, Ranks: stacktree.RanksOf(0)}}}
	s.Tasks[0].Usage = &spec.LiveUsage{SilentSeconds: 90}
	s.Facts = outcome.Facts(s, time.Now())
	var out bytes.Buffer
	printStatus(&out, s, false)
	assert.Equal(t, 1, strings.Count(out.String(), "only one"))
	assert.Regexp(t, `(?s)^run big: running, .*\nthe run hangs: rank 0 .*\n1 task is silent for 1m30s .*: worker-300\n.*waits to be started again: worker-300\n.*\n1 of 1 \(rank 0\).*\n\nTASK `, out.String())
}

// Stacks are read from this machine or through their host's service. Unreadable stacks are
// named, and the command fails.
func TestStacksOfAnotherHost(t *testing.T) {
	const name = "stacks-20260102T030405.678Z.txt"
	write := func(runDir, text string) string {
		dir := tasklog.ProcessDir(runDir, 0, 1)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return filepath.Join(dir, name)
	}
	// The path that another host names belongs to an unrelated file on this machine.
	logs, ours, theirs := tasklog.RunDir(t.TempDir(), "iris-1", "0199-aa"), t.TempDir(), t.TempDir()
	here, secret := write(logs, "main\n"), write(ours, "a file of ours\n")
	write(theirs, "its own\n")
	files := must.Get(hostservice.Listen(hostservice.Config{Host: "served", StateDir: t.TempDir(), Listen: "127.0.0.1"}))(t)
	defer files.Close()
	go files.Serve(func(ctx context.Context, _ runkey.Run) { <-ctx.Done() })
	served := *files.Describe(runkey.Run{WorkflowID: "iris-1", RunID: "0199-aa"}, theirs, nil)
	read := starter.Get(nil, "iris-1", "").Files(&starter.Status{RunID: "iris-1", ExecutionID: "0199-aa", Services: []spec.HostService{served}})
	defer read.Close()

	for _, c := range []struct {
		host, file, text string
	}{
		{"a", here, "main\n"},
		{"shares", here, "main\n"}, // a directory named after the run
		{"served", secret, "its own\n"},
		{"served", "/somewhere/else/" + name, ""},
		{"unserved", secret, ""},
		{"", secret, ""},
	} {
		captured := []stacksOfTask{{Task: "worker-1", Host: c.host, File: c.file}}
		for _, json := range []bool{false, true} {
			var out, errs bytes.Buffer
			a := &cli.App{Out: &out, Err: &errs}
			a.Global.JSON = json
			err := printStacks(t.Context(), a, "iris-1", nil, captured, nil, true, read)
			assert.NotContains(t, out.String(), "a file of ours")
			if c.text != "" {
				assert.NoError(t, err)
				require.NotNil(t, captured[0].Text)
				assert.Equal(t, c.text, *captured[0].Text)
			} else {
				assert.Equal(t, exitcode.Machinery, cli.CodeOf(err))
				assert.Equal(t, "clusterrun: omitted because it cannot be read from this machine:\n  worker-1: "+c.file+" on "+cli.OrDash(c.host)+"\n", errs.String())
			}
			assert.NoError(t, printStacks(t.Context(), a, "iris-1", nil, captured, nil, false, read))
		}
	}
}
