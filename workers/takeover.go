package workers

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/clusterrun/clusterrun/activities/system/parallel"
	"github.com/clusterrun/clusterrun/activities/system/retry"
)

// takenOver is the failure that the server gets for the tasks of a side that is gone.
const takenOver = "the Temporal client of the host worker has exited; its successor takes over"

// inherited returns the files that an earlier side left.
func (h *heldTasks) inherited() []string {
	files, err := filepath.Glob(filepath.Join(h.dir, "*.*"))
	if err != nil {
		h.log.Debug("the work of an earlier client is unknown", zap.Error(err))
	}
	return files
}

// takeovers is the most answers in flight.
const takeovers = 16

// takeOver gives the tasks of an earlier side back to the server: each activity fails, to be
// retried at once, and its next attempt adopts the process or finds out how it ended.
func (s *side) takeOver(ctx context.Context, inherited []string) {
	parallel.Each(takeovers, inherited, func(_ int, file string) { s.giveBack(ctx, file) })
	if len(inherited) > 0 {
		s.log.Info("took over from an earlier client", zap.Int("held", len(inherited)))
	}
}

// giveBackPatience bounds the retries. By then the tasks have timed out on the server, too.
const giveBackPatience = 30 * time.Second

// giveBack gives the task in a file back, and removes the file. A side that ends before that
// leaves the file to its successor.
func (s *side) giveBack(ending context.Context, file string) {
	ctx, cancel := context.WithTimeout(ending, giveBackPatience)
	defer cancel()
	what, err := os.ReadFile(file)
	if err != nil {
		return
	}
	again := retry.Backoff{First: 50 * time.Millisecond, Most: 2 * time.Second}
	for {
		err := s.giveBackOnce(ctx, strings.TrimPrefix(filepath.Ext(file), "."), what)
		if err == nil || answered(err) || ctx.Err() != nil {
			break
		}
		s.log.Debug("the server did not take back the work of an earlier client", zap.Error(err))
		_ = again.Sleep(ctx)
	}
	if ending.Err() == nil {
		_ = os.Remove(file)
	}
}

func (s *side) giveBackOnce(ctx context.Context, kind string, what []byte) error {
	service, identity := s.client.WorkflowService(), s.Host
	switch kind {
	case heldActivity:
		_, err := service.RespondActivityTaskFailed(ctx, &workflowservice.RespondActivityTaskFailedRequest{
			TaskToken: what, Identity: identity, Namespace: s.namespaceName(),
			Failure: &failurepb.Failure{
				Message: takenOver,
				FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{
					Type: "HostWorkerAway", NextRetryDelay: durationpb.New(time.Millisecond),
					Category: enumspb.APPLICATION_ERROR_CATEGORY_BENIGN,
				}},
			},
		})
		return err
	case heldWorkflow:
		_, err := service.RespondWorkflowTaskFailed(ctx, &workflowservice.RespondWorkflowTaskFailedRequest{
			TaskToken: what, Identity: identity, Namespace: s.namespaceName(),
			Cause:   enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
			Failure: &failurepb.Failure{Message: takenOver},
		})
		return err
	case heldQueue:
		_, err := service.ShutdownWorker(ctx, &workflowservice.ShutdownWorkerRequest{
			Namespace: s.namespaceName(), StickyTaskQueue: string(what), Identity: identity, Reason: takenOver,
		})
		return err
	}
	return nil
}
