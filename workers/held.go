package workers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
)

// heldTasks records on disk the tokens of the tasks that this side has to answer. If the side
// is killed, the server would wait for a timeout, which is 20 s for the lease on a process.
// Instead, the next side answers (takeover.go).
//
// Each task has one file, named by its kind and its token. The files are not synced, since a
// machine that crashed does not need them. A file that cannot be written costs only the wait.
//
// It also records in memory when the server was asked for each activity.
type heldTasks struct {
	dir   string
	log   *zap.Logger
	asked sync.Map // from an activity's token to the nanoseconds of CLOCK_BOOTTIME
	// queue is done when the queue of cached workflows is noted.
	queue sync.Once
}

// These are the kinds of files, with their contents.
const (
	heldActivity = "activity" // a task's token
	heldWorkflow = "workflow" // a task's token
	heldQueue    = "queue"    // the name of the queue of the workflows cached here
)

func newHeldTasks(stateDir string, log *zap.Logger) *heldTasks {
	h := &heldTasks{dir: filepath.Join(stateDir, "held"), log: log}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		log.Warn("a record of this client's work cannot be written; if the client is killed, the server waits for it", zap.Error(err))
	}
	return h
}

func (h *heldTasks) path(kind string, what []byte) string {
	sum := sha256.Sum256(what)
	return filepath.Join(h.dir, hex.EncodeToString(sum[:12])+"."+kind)
}

func (h *heldTasks) keep(kind string, what []byte) {
	if len(what) == 0 {
		return
	}
	if err := os.WriteFile(h.path(kind, what), what, 0o600); err != nil {
		h.log.Debug("work that the server sent to this client cannot be recorded", zap.Error(err))
	}
}

func (h *heldTasks) drop(kind string, what []byte) {
	if err := os.Remove(h.path(kind, what)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.log.Debug("a record of work that the server sent to this client stays", zap.Error(err))
	}
}

// intercept records each task that a poll returns before it is worked on, and forgets it when
// the server has accepted an answer or no longer wants one.
func (h *heldTasks) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if poll, ok := req.(*workflowservice.PollWorkflowTaskQueueRequest); ok && poll.GetTaskQueue().GetKind() == enumspb.TASK_QUEUE_KIND_STICKY {
		h.queue.Do(func() { h.keep(heldQueue, []byte(poll.GetTaskQueue().GetName())) })
	}
	sent := supervisor.BootNanos()
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err == nil {
		h.received(reply, sent)
	}
	if err == nil || answered(err) {
		switch r := req.(type) {
		case *workflowservice.RespondActivityTaskCompletedRequest:
			h.dropActivity(r.GetTaskToken())
		case *workflowservice.RespondActivityTaskFailedRequest:
			h.dropActivity(r.GetTaskToken())
		case *workflowservice.RespondActivityTaskCanceledRequest:
			h.dropActivity(r.GetTaskToken())
		case *workflowservice.RespondWorkflowTaskCompletedRequest:
			h.drop(heldWorkflow, r.GetTaskToken())
		case *workflowservice.RespondWorkflowTaskFailedRequest:
			h.drop(heldWorkflow, r.GetTaskToken())
		}
	}
	return err
}

func (h *heldTasks) dropActivity(token []byte) {
	h.asked.Delete(string(token))
	h.drop(heldActivity, token)
}

// askedAt returns when the server was asked for the activity with the token, in nanoseconds of
// CLOCK_BOOTTIME, or 0 if that is not known. The server handed out the activity later than
// that.
func (h *heldTasks) askedAt(token []byte) int64 {
	sent, _ := h.asked.Load(string(token))
	at, _ := sent.(int64)
	return at
}

func (h *heldTasks) received(reply any, sent int64) {
	switch r := reply.(type) {
	case *workflowservice.PollActivityTaskQueueResponse:
		if token := r.GetTaskToken(); len(token) > 0 {
			h.asked.Store(string(token), sent)
		}
		h.keep(heldActivity, r.GetTaskToken())
	case *workflowservice.PollWorkflowTaskQueueResponse:
		if r.GetQuery() == nil { // its client does not wait as long as that
			h.keep(heldWorkflow, r.GetTaskToken())
		}
	case *workflowservice.StartWorkflowExecutionResponse:
		h.keep(heldWorkflow, r.GetEagerWorkflowTask().GetTaskToken())
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		for _, a := range r.GetActivityTasks() {
			h.received(a, sent)
		}
		h.keep(heldWorkflow, r.GetWorkflowTask().GetTaskToken())
	}
}

// answered reports whether an error means that the server wants no answer, or no other.
func answered(err error) bool {
	c := serviceerror.ToStatus(err).Code()
	return c == codes.NotFound || c == codes.InvalidArgument
}
