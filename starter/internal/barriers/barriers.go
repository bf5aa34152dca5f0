package barriers

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/internal/temporalapi"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Barrier is a barrier with waiting tasks.
type Barrier struct {
	Name string `json:"name"`
	// Round counts from 1.
	Round      int    `json:"round"`
	Generation int    `json:"generation"`
	WorkflowID string `json:"workflow_id"`
	// Unanswered reports whether no worker currently answers for the barrier's workflow, so that
	// the waiting tasks are unknown.
	Unanswered bool                 `json:"unanswered,omitempty"`
	Opened     time.Time            `json:"opened,omitzero"`
	Deadline   time.Time            `json:"deadline,omitzero"`
	Waiting    []spec.BarrierWaiter `json:"waiting"`
	Missing    []Missing            `json:"missing"`
}

// Missing is a participant that has not arrived, with its host and state if the run knows
// them.
type Missing struct {
	spec.BarrierMissing
	Host  string         `json:"host,omitempty"`
	State spec.TaskState `json:"state,omitempty"`
}

// Open lists, by name, the barriers with waiting tasks. The server's list of workflows lags
// slightly, so a newly opened barrier may be missing.
func Open(ctx context.Context, r *starter.Run) ([]Barrier, error) {
	status, err := r.Status(ctx)
	if err != nil {
		return nil, err
	}
	tasks := map[string]starter.TaskStatus{}
	for _, t := range status.Tasks {
		tasks[t.Name] = t
	}
	// Rounds of an earlier run with the same ID do not belong to this run.
	rounds := roundsOf(r, status.ExecutionID)
	open, err := rounds.list(ctx, true)
	if err != nil {
		return nil, err
	}
	found := make([]*Barrier, len(open))
	background.Each(8, open, func(i int, w *workflowpb.WorkflowExecutionInfo) {
		found[i] = rounds.ask(ctx, w.GetExecution().GetWorkflowId(), tasks)
	})
	barriers := []Barrier{}
	for _, b := range found {
		if b != nil {
			barriers = append(barriers, *b)
		}
	}
	slices.SortFunc(barriers, func(a, b Barrier) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Round, b.Round))
	})
	return barriers, ctx.Err()
}

// Round is a barrier round that has closed, with or without all its arrivals.
type Round struct {
	Name           string
	Round          int // starting at 1
	Opened, Closed time.Time
}

// Closed lists the barrier rounds that the server has closed, oldest first. Rounds on a single
// host are unknown to the server.
func Closed(ctx context.Context, r *starter.Run) ([]Round, error) {
	known, err := r.Summary(ctx)
	if err != nil {
		return nil, err
	}
	own := roundsOf(r, known.ExecutionID)
	found, err := own.list(ctx, false)
	if err != nil {
		return nil, err
	}
	rounds := make([]Round, len(found))
	for i, w := range found {
		var b Barrier
		b.nameFrom(strings.TrimPrefix(w.GetExecution().GetWorkflowId(), own.prefix))
		rounds[i] = Round{b.Name, b.Round, w.GetStartTime().AsTime(), w.GetCloseTime().AsTime()}
	}
	slices.SortFunc(rounds, func(a, b Round) int {
		return cmp.Or(a.Opened.Compare(b.Opened), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Round, b.Round))
	})
	return rounds, nil
}

// rounds finds a run's barrier-round workflows.
type rounds struct {
	run    *starter.Run
	prefix string // prefix of their workflow IDs
}

func roundsOf(r *starter.Run, execution string) rounds {
	return rounds{r, spec.BarrierIDPrefix(r.ID, execution)}
}

// list returns the open rounds if open is set, otherwise the closed ones.
func (r rounds) list(ctx context.Context, open bool) ([]*workflowpb.WorkflowExecutionInfo, error) {
	is := workflowstatus.Closed
	if open {
		is = workflowstatus.Open
	}
	found, err := temporalapi.Workflows(ctx, r.run.Client(), fmt.Sprintf("WorkflowType = '%s' AND %s AND WorkflowId STARTS_WITH %s",
		spec.BarrierWorkflowType, is, temporalapi.Quoted(r.prefix)))
	if err != nil {
		return nil, fmt.Errorf("list the barriers of run %s: %w", r.run.ID, err)
	}
	return found, nil
}

// ask queries a round's workflow. It returns nil if the round has closed since.
func (r rounds) ask(ctx context.Context, id string, tasks map[string]starter.TaskStatus) *Barrier {
	b := &Barrier{WorkflowID: id, Waiting: []spec.BarrierWaiter{}, Missing: []Missing{}}
	var status spec.BarrierStatus
	v, err := temporalapi.Query(ctx, r.run.Client(), id, "", spec.QueryBarrier)
	if err == nil {
		err = v.Get(&status)
	}
	switch {
	case servererror.IsNotFound(err):
		return nil
	case err != nil:
		b.Unanswered = true
		b.nameFrom(strings.TrimPrefix(id, r.prefix))
		return b
	case status.State != spec.BarrierWaiting:
		return nil
	}
	b.Name, b.Round, b.Generation = status.Name, status.Round+1, status.Generation
	b.Opened, b.Deadline, b.Waiting = status.Opened, status.Deadline, status.Waiting
	for _, m := range status.Missing {
		t := tasks[m.Task]
		b.Missing = append(b.Missing, Missing{BarrierMissing: m, Host: t.Host, State: t.State})
	}
	return b
}

// nameFrom parses generation, name and round from the end of a workflow ID.
func (b *Barrier) nameFrom(path string) {
	parts := strings.Split(path, "/")
	if len(parts) != 3 {
		b.Name = path
		return
	}
	b.Generation, _ = strconv.Atoi(parts[0])
	b.Round, _ = strconv.Atoi(parts[2])
	b.Name = parts[1]
	if name, err := url.PathUnescape(parts[1]); err == nil {
		b.Name = name
	}
}
