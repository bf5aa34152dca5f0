package starter

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Barrier is a barrier at which tasks of a run wait.
type Barrier struct {
	Name string `json:"name"`
	// Round counts from 1.
	Round      int    `json:"round"`
	Generation int    `json:"generation"`
	WorkflowID string `json:"workflow_id"`
	// Unanswered reports whether nobody executes the barrier's workflow at the moment, so
	// that it is not known who waits.
	Unanswered bool                 `json:"unanswered,omitempty"`
	Opened     time.Time            `json:"opened,omitzero"`
	Deadline   time.Time            `json:"deadline,omitzero"`
	Waiting    []spec.BarrierWaiter `json:"waiting"`
	Missing    []MissingTask        `json:"missing"`
}

// MissingTask is a participant that has not arrived, and what the run knows of it.
type MissingTask struct {
	spec.BarrierMissing
	Host  string         `json:"host,omitempty"`
	State spec.TaskState `json:"state,omitempty"`
}

// Barriers lists the barriers at which tasks of the run wait, by name. The server's
// list of workflows lags behind by a moment: a barrier that opened just now may be
// missing.
func (r *Run) Barriers(ctx context.Context) ([]Barrier, error) {
	if r.past != nil {
		return nil, errPast
	}
	status, err := r.Status(ctx)
	if err != nil {
		return nil, err
	}
	tasks := map[string]TaskStatus{}
	for _, t := range status.Tasks {
		tasks[t.Name] = t
	}
	d, err := r.describe(ctx)
	if err != nil {
		return nil, r.requestError(err)
	}
	// What is left of an earlier run of the same ID is not this run's.
	prefix := spec.BarrierIDPrefix(r.ID, d.GetWorkflowExecutionInfo().GetExecution().GetRunId())
	ids, err := r.openBarriers(ctx, prefix)
	if err != nil {
		return nil, err
	}
	found := make([]*Barrier, len(ids))
	limit := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			found[i] = r.barrier(ctx, prefix, id, tasks)
		})
	}
	wg.Wait()
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

// openBarriers returns the workflow IDs of the rounds that are open.
func (r *Run) openBarriers(ctx context.Context, prefix string) ([]string, error) {
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND WorkflowId STARTS_WITH '%s'",
		spec.BarrierWorkflowType, strings.ReplaceAll(prefix, "'", "''"))
	var ids []string
	var page []byte
	for {
		list, err := r.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: page})
		if err != nil {
			return nil, fmt.Errorf("list the barriers of run %s: %w", r.ID, err)
		}
		for _, e := range list.GetExecutions() {
			ids = append(ids, e.GetExecution().GetWorkflowId())
		}
		if page = list.GetNextPageToken(); len(page) == 0 {
			return ids, nil
		}
	}
}

// barrier asks one of them; nil when it has closed since.
func (r *Run) barrier(ctx context.Context, prefix, id string, tasks map[string]TaskStatus) *Barrier {
	b := &Barrier{WorkflowID: id, Waiting: []spec.BarrierWaiter{}, Missing: []MissingTask{}}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var status spec.BarrierStatus
	v, err := r.client.QueryWorkflow(ctx, id, "", spec.QueryBarrier)
	if err == nil {
		err = v.Get(&status)
	}
	switch {
	case isNotFound(err):
		return nil
	case err != nil:
		b.Unanswered = true
		b.nameFrom(strings.TrimPrefix(id, prefix))
		return b
	case status.State != spec.BarrierWaiting:
		return nil
	}
	b.Name, b.Round, b.Generation = status.Name, status.Round+1, status.Generation
	b.Opened, b.Deadline, b.Waiting = status.Opened, status.Deadline, status.Waiting
	for _, m := range status.Missing {
		t := tasks[m.Task]
		b.Missing = append(b.Missing, MissingTask{BarrierMissing: m, Host: t.Host, State: t.State})
	}
	return b
}

// nameFrom reads what the end of a workflow ID tells: generation, name and round.
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
