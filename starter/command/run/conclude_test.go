package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/mocks"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/worker"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// unread is an output that blocks until it is closed.
type unread chan struct{}

func (u unread) Write(b []byte) (int, error) {
	<-u
	return len(b), nil
}

// newLocalRun returns a run on this machine that writes its messages to stderr.
func newLocalRun(stderr io.Writer) *localRun {
	l := &localRun{App: &cli.App{Err: stderr}, signals: make(chan os.Signal, 8), late: make(chan struct{})}
	l.giveUp = sync.OnceFunc(func() { close(l.late) })
	l.Printer.SetAside()
	return l
}

// await waits for the reader of our output until a signal comes, and then for [cli.ReadersBound]
// or until the next signal.
func TestSignalsWorkWhereNobodyReads(t *testing.T) {
	signals := func(n int) (waited time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			stderr := make(unread)
			defer close(stderr)
			l := newLocalRun(stderr)
			l.Say("nobody reads this")
			signals := make(chan os.Signal, 8)
			l.signals = signals
			var begun time.Time
			go func() {
				time.Sleep(time.Hour)
				begun = time.Now()
				signals <- syscall.SIGPIPE // ignored by await
				for range n {
					signals <- syscall.SIGTERM
					time.Sleep(cli.SameSignal)
				}
			}()
			assert.False(t, l.await(l.Printer.Flush))
			waited = time.Since(begun)
			assert.Equal(t, syscall.SIGTERM, l.interrupted.First)
			l.Say("nor this")
			l.Printer.GiveUp()
			l.Printer.Flush()
			assert.Equal(t, waited, time.Since(begun), "nobody is waited for again")
			time.Sleep(cli.ReadersBound)
		})
		return waited
	}
	assert.Equal(t, cli.ReadersBound, signals(1))
	assert.Equal(t, cli.SameSignal, signals(2))
}

func TestWhatIsReadLateIsSaidAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		l := newLocalRun(w)
		for range cli.MaxUnsaid + 3 {
			l.Say("x")
		}
		lines := make(chan []byte)
		go func() {
			b, _ := io.ReadAll(r)
			lines <- b
		}()
		assert.True(t, l.await(l.Printer.Flush))
		require.NoError(t, w.Close())
		all := string(<-lines)
		said := strings.Count(all, "clusterrun: x\n") // the first one may have left the queue already
		assert.Contains(t, []int{cli.MaxUnsaid, cli.MaxUnsaid + 1}, said)
		assert.Contains(t, all, fmt.Sprintf("clusterrun: %d more unread messages omitted\n", cli.MaxUnsaid+3-said))
	})
}

// Without a server the supervisor stops each task with the spec's signal and grace period.
func TestStopsOfASpec(t *testing.T) {
	count, second := 1, spec.Duration(time.Second)
	s := &spec.RunSpec{Tasks: []spec.TaskGroup{
		{Type: "chief", Count: &count},
		{Type: "ps", Count: &count, Stop: spec.Stop{Signal: "SIGINT"}},
	}, Stop: spec.Stop{Grace: &second}}
	assert.Equal(t, supervisor.StopAll{Stops: supervisor.Stops{
		Stop:  supervisor.Stop{Signal: int(syscall.SIGTERM), Grace: time.Second},
		Tasks: map[string]supervisor.Stop{"ps-0": {Signal: int(syscall.SIGINT), Grace: time.Second}},
	}}, stopsOf(s, nil))
	assert.Equal(t, stopsOf(s, nil), stopsOf(s, syscall.SIGPIPE), "no signal that anybody sent")
	assert.Equal(t, supervisor.StopAll{Stops: supervisor.Stops{
		Stop:  supervisor.Stop{Signal: int(syscall.SIGHUP), Grace: time.Second}, // the received signal
		Tasks: map[string]supervisor.Stop{"ps-0": {Signal: int(syscall.SIGINT), Grace: time.Second}},
	}}, stopsOf(s, syscall.SIGHUP))
}

// The second signal may come as the run ends; kill must still find the host worker.
func TestASecondSignalAsTheRunEnds(t *testing.T) {
	c := mocks.NewClient(t)
	over := make(chan struct{})
	c.On("UpdateWorkflow", mock.Anything, mock.Anything).Run(func(mock.Arguments) { <-over }).Return(nil, errors.New("away"))
	l := newLocalRun(io.Discard)
	l.run = starter.Get(c, "iris-1", "")
	ours, theirs, err := os.Pipe()
	require.NoError(t, err)
	l.worker = &worker.HostWorker{Lifeline: theirs, Theirs: ours, Exited: make(chan struct{})}
	close(l.worker.Exited)
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		l.kill(context.Background())
	}()
	l.endWorker() // like finish
	close(over)
	<-killed
	assert.True(t, l.worker.IsCut())
}

// The exit code is 1, like torchrun's, whatever the process's exit code. The report shows both.
func TestExitCodeAsTorchrun(t *testing.T) {
	failed := &spec.RunResult{Verdict: spec.VerdictFailed, ExitCode: 137, Message: "It was killed.", FirstFailure: &spec.Failure{}}
	got := runOptions{torchrun: true}.asTorchrun(failed)
	assert.Equal(t, 1, got.ExitCode)
	assert.Contains(t, got.Message, "It was killed.\nThe exit code is 1, as with torchrun;")
	assert.Contains(t, got.Message, "137")
	assert.Equal(t, 137, failed.ExitCode)
	assert.Same(t, failed, runOptions{}.asTorchrun(failed))
}
