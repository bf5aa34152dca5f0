package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// coordinatorFlag is the flag for the descriptor of the owner's socket.
const coordinatorFlag = "coordinator-fd"

// tasksEvery is the interval between checks that all tasks are still running.
const tasksEvery = 2 * time.Second

const (
	// ownerReads limits how long an owner takes to read the last answer.
	ownerReads = 5 * time.Second
	// runEnds limits how long the run may take to finish once its queue is closed.
	runEnds = 5 * time.Second
)

// owner is the program of which a run is part, such as one with a process pool. On its end of a
// socket, it sends the closure requests of the task API, one at a time. The last answer contains
// the reason why no more answers follow, and may be sent before there is a request. The run ends
// when the owner's end of the socket is closed even if the owner was killed. The methods may be
// called on a nil owner, which means that there is none.
type owner struct {
	app    *cli.App
	socket *os.File
	// gone reports whether the owner has made its last request. inOrder reports whether it closed
	// its end only for writing, and still reads.
	gone    atomic.Bool
	inOrder bool
	serving sync.WaitGroup
	stop    context.CancelCauseFunc
}

// listenToOwner prepares for the owner, if any. When the owner goes away, signals receives SIGPIPE,
// just as when our output is no longer read.
func listenToOwner(a *cli.App, o runOptions, signals chan<- os.Signal) (*owner, error) {
	if o.coordinator == 0 {
		return nil, nil
	}
	syscall.CloseOnExec(o.coordinator)
	if err := unix.SetNonblock(o.coordinator, true); err != nil {
		return nil, cli.Usagef("--%s %d: %s; use a socket's descriptor", coordinatorFlag, o.coordinator, err)
	}
	watched, err := unix.FcntlInt(uintptr(o.coordinator), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("--%s %d: %w", coordinatorFlag, o.coordinator, err)
	}
	a.Owned, a.NoStatus = true, true
	w := &owner{app: a, socket: os.NewFile(uintptr(o.coordinator), "coordinator")}
	go func() {
		w.inOrder = awaitHangup(watched)
		w.gone.Store(true)
		signals <- syscall.SIGPIPE
	}()
	return w, nil
}

// tellOwner sends the run's error to the owner. If the run does not start, this is the only answer.
// An owner that has already received a reason no longer reads.
func tellOwner(fd int, err error) {
	if err == nil || fd < cli.FirstFD {
		return
	}
	w := &owner{socket: os.NewFile(uintptr(fd), "coordinator")}
	_ = w.say(nil, &wire.Problem{Code: wire.CodeOver, Message: err.Error()})
}

// awaitHangup waits until a socket's peer has closed it for writing, and reports whether the
// peer still reads. awaitHangup does not read from the socket, because unread requests no longer
// count.
func awaitHangup(fd int) (open bool) {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		if _, err := unix.Poll(fds, -1); err != unix.EINTR {
			_ = unix.Close(fd)
			return fds[0].Revents&(unix.POLLHUP|unix.POLLERR) == 0
		}
	}
}

// isGone reports whether the owner has closed its end.
func (w *owner) isGone() bool {
	return w != nil && w.gone.Load()
}

// endedInOrder reports whether the owner has made its last request but still reads.
func (w *owner) endedInOrder() bool { return w.isGone() && w.inOrder }

// serve carries out the owner's requests for the run's closures.
func (w *owner) serve(ctx context.Context, run *starter.Run) {
	if w == nil {
		return
	}
	ctx, w.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		_ = w.socket.SetReadDeadline(time.Now())
		_ = w.socket.SetWriteDeadline(time.Now().Add(ownerReads))
	})
	w.serving.Go(func() { w.watchTasks(ctx, run) })
	w.serving.Go(func() {
		q, err := run.Calls(ctx)
		if err == nil {
			err = w.answerAll(ctx, q)
		}
		if err != nil && !w.isGone() && ctx.Err() == nil {
			w.app.Say("run %s: %s", run.ID, err)
		}
		<-ctx.Done()
		_ = w.say(nil, &wire.Problem{Code: wire.CodeOver, Message: context.Cause(ctx).Error()})
	})
}

// answerAll answers requests until there are no more, or ctx is done.
func (w *owner) answerAll(ctx context.Context, q *closurequeue.Client) error {
	in := bufio.NewReader(w.socket)
	for {
		r, err := http.ReadRequest(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var message []byte
		if err == nil {
			message, err = io.ReadAll(r.Body)
		}
		if err != nil {
			return fmt.Errorf("read a request from the owner: %w", err)
		}
		out, problem := closurequeue.Answer(ctx, q, message)
		if problem != nil && problem.Code == wire.CodeOver {
			select {
			case <-ctx.Done(): // the run gives a better reason
			case <-time.After(runEnds):
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.say(out, problem); err != nil {
			return err
		}
	}
}

// say writes an answer.
func (w *owner) say(out any, problem *wire.Problem) error {
	status := http.StatusOK
	if problem != nil {
		status, out = http.StatusConflict, wire.Failure{Error: *problem}
	}
	body, err := json.Marshal(out)
	if err != nil {
		return err
	}
	a := http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}
	var text bytes.Buffer
	if err := a.Write(&text); err != nil {
		return err
	}
	_, err = w.socket.Write(text.Bytes())
	return err
}

// watchTasks notifies the owner if a task ends while the run continues, because closures scheduled
// on that task would wait forever.
func (w *owner) watchTasks(ctx context.Context, run *starter.Run) {
	tick := time.NewTicker(tasksEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s, err := run.Status(ctx)
		if err != nil || ctx.Err() != nil {
			continue
		}
		if name := endedWell(s); name != "" {
			w.stop(errors.New(name + " has ended and makes no more calls"))
			return
		}
	}
}

// endedWell returns the first task that ended without an error while the run continues, or "". If a
// task fails or the run is being stopped, the run ends and itself provides the reason. A task that
// was stopped is not the reason.
func endedWell(s *starter.Status) string {
	if s.State != spec.RunRunning {
		return ""
	}
	for _, t := range s.Tasks {
		if t.State == spec.TaskEnded && (t.Exit == nil || t.Exit.OK()) {
			return t.Name
		}
	}
	return ""
}

// over notifies the owner that the run has finished.
func (w *owner) over(end ending) {
	if w == nil {
		return
	}
	text := ""
	switch {
	case end.result != nil:
		text = fmt.Sprintf("the run has %s: %s", end.result.Verdict, end.result.Message)
		if f := end.result.FirstFailure; f != nil && f.Message != "" {
			text += "\n" + f.Message
		}
	case end.err != nil:
		text = end.err.Error()
	}
	w.stop(errors.New(text))
	w.serving.Wait()
}
