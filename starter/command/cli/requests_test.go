package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/mocks"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/rundir"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// One wrong name does not keep a request from the other tasks.
func TestARequestIsMetForTheTasksForWhichItCanBe(t *testing.T) {
	wrong := func(tasks ...string) error {
		e := &starter.RefusedError{Reason: "as the run says it"}
		for _, task := range tasks {
			e.Tasks = append(e.Tasks, spec.TaskProblem{Task: task, Message: task + " is no task"})
		}
		return e
	}
	var asked [][]string
	answers := func(errs ...error) func([]string) (spec.RequestAnswer, error) {
		asked = nil
		return func(tasks []string) (spec.RequestAnswer, error) {
			asked = append(asked, tasks)
			err := errs[len(asked)-1]
			if err != nil {
				return spec.RequestAnswer{}, err
			}
			return spec.RequestAnswer{Tasks: tasks, Problems: []spec.TaskProblem{{Task: "c", Message: "c is on a host that is away"}}}, nil
		}
	}

	answer := must.Get(forTasks([]string{"a", "b", "c"}, answers(wrong("a"), nil)))(t)
	assert.Equal(t, [][]string{{"a", "b", "c"}, {"b", "c"}}, asked)
	assert.Equal(t, []string{"b", "c"}, answer.Tasks)
	assert.Equal(t, "a is no task\nc is on a host that is away", Messages(answer.Problems))

	_, err := forTasks([]string{"a", "b"}, answers(wrong("a", "b")))
	require.EqualError(t, err, "as the run says it")
	assert.Len(t, asked, 1, "there is nobody left")

	_, err = forTasks(nil, answers(errors.New("the run has ended")))
	require.EqualError(t, err, "the run has ended")

	_, err = forTasks([]string{"a", "b"}, answers(wrong("a"), wrong("b")))
	require.EqualError(t, err, "a is no task\nas the run says it")
}

// A server from the environment is named by its address.
func TestAServerIsNamedByItsAddress(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "temporal.example:7233")
	assert.Equal(t, "temporal.example:7233", Target{}.String())
	assert.Equal(t, "other:7233", Target{Options: connect.Options{Address: "other:7233"}}.String())
}

// Only a run's directory records it here, so the directory stays until the server confirms that
// the run is over; an interrupted request confirms nothing.
func TestAnAbandonedRunIsKeptUntilItIsKnownToBeOver(t *testing.T) {
	unknown := serviceerror.NewNotFound("no such workflow")
	for name, c := range map[string]struct {
		answer error
		since  time.Duration
		kept   bool
	}{
		"the server does not know it":     {unknown, time.Hour, false},
		"the server does not know it yet": {unknown, time.Second, true},
		"there was no time":               {context.Canceled, 0, true},
		"the server is away":              {serviceerror.NewUnavailable("away"), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			d := must.Get(rundir.Create(parent))(t)
			require.NoError(t, d.Save(rundir.Record{Embedded: true, RunID: "a", Queue: "q", Started: time.Now().Add(-c.since)}))
			path := d.Path
			d.Close() // the owner is gone
			found := must.Get(rundir.Abandoned(parent))(t)
			require.Len(t, found, 1)
			theirs := &mocks.Client{}
			theirs.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, mock.Anything).Return(nil, c.answer)
			endOne(t.Context(), (&App{}), found[0], theirs, Target{Embedded: true})
			_, err := os.Stat(path)
			assert.Equal(t, c.kept, err == nil)
		})
	}
}

func TestExitCodes(t *testing.T) {
	for want, errs := range map[int][]error{
		0:   {nil},
		2:   {Usagef("x"), &spec.InvalidSpecError{}, &starter.RunningError{ID: "x"}, &starter.RefusedError{Invalid: true}, fmt.Errorf("wrapped: %w", Usagef("x"))},
		7:   {&ExitError{Code: 7}, &starter.Error{Result: &spec.RunResult{ExitCode: 7}}},
		125: {errors.New("x"), &starter.TerminatedError{}, &starter.NotFoundError{}, &starter.UnansweredError{}, &starter.RefusedError{}},
	} {
		for _, err := range errs {
			assert.Equal(t, want, CodeOf(err), "%v", err)
		}
	}
}

func TestErrorsAreSaidInOneShape(t *testing.T) {
	for want, err := range map[string]error{
		"clusterrun: x\n": errors.New("x"),
		"clusterrun: the Temporal server does not answer in time; check whether its database is up\n": context.DeadlineExceeded,
		"":                     &ExitError{Code: 3},
		"clusterrun: why\n":    &ExitError{Code: 3, Cause: errors.New("why")},
		"clusterrun: a\n  b\n": errors.New("a\nb"),
		"clusterrun: the command line has 2 problems:\n  a\n  b\n": &UsageError{Problems: []string{"a", "b"}},
		"clusterrun: run.yaml: a\n":                                &UsageError{About: "run.yaml", Problems: []string{"a"}},
	} {
		var stderr bytes.Buffer
		a := &App{Err: &stderr}
		a.Exit(err)
		assert.Equal(t, want, stderr.String())
	}
}

func TestInterruption(t *testing.T) {
	var i Interruption
	assert.Equal(t, 1, i.Add(syscall.SIGTERM))
	assert.Equal(t, 0, i.Add(syscall.SIGPIPE), "a broken pipe does not kill what is being stopped")
	assert.Equal(t, 2, i.Add(syscall.SIGINT))
	assert.Equal(t, 143, CodeOfSignal(i.First))

	var broken Interruption
	assert.Equal(t, 1, broken.Add(syscall.SIGPIPE))
	assert.Equal(t, 0, broken.Add(syscall.SIGPIPE), "every write says it again")
	assert.Equal(t, 2, broken.Add(syscall.SIGINT))
	assert.Equal(t, 141, CodeOfSignal(broken.First))
}

func TestInterruptsOf(t *testing.T) {
	four := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}
	for value, want := range map[string][]syscall.Signal{
		"":                         four, // TE-40
		"  ":                       four,
		"SIGTERM,SIGUSR1, SIGUSR2": {syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}, // TE-41, TE-45
		"SIGUSR1,USR1":             {syscall.SIGUSR1},
	} {
		got, problems := InterruptsOf(value)
		assert.Equal(t, want, got, value)
		assert.Empty(t, problems, value)
	}
	got, problems := InterruptsOf("SIGTERM,SIGTRM,,SIGKILL,SIGCHLD") // TE-42
	assert.Equal(t, []syscall.Signal{syscall.SIGTERM}, got)
	assert.Len(t, problems, 4)
	assert.Contains(t, problems[0], `"SIGTRM" is not a signal; did you mean SIGTERM?`)
	assert.Contains(t, problems[2], `programs cannot handle "SIGKILL"`)
	assert.Contains(t, problems[3], `clusterrun itself uses "SIGCHLD"`)
}

// A broken connection to a killed server does not count as broken output.
func TestABrokenConnectionIsNoBrokenOutput(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	assert.False(t, nobodyReads(w))
	r.Close()
	assert.True(t, nobodyReads(w))

	file := must.Get(os.CreateTemp(t.TempDir(), ""))(t)
	defer file.Close()
	assert.False(t, nobodyReads(file))

	fds := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
	socket := os.NewFile(uintptr(fds[0]), "socket")
	defer socket.Close()
	assert.False(t, nobodyReads(socket))
	require.NoError(t, unix.Close(fds[1]))
	assert.True(t, nobodyReads(socket))

	signals, stop := ListenForSignals((&App{}), []syscall.Signal{syscall.SIGUSR1})
	defer stop()
	_, err = socket.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.EPIPE)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	assert.Equal(t, os.Signal(syscall.SIGUSR1), <-signals)
	assert.Empty(t, signals)
}
