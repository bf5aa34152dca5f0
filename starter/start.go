package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/starter/sourcecode"
	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// Options configure how a run is started.
type Options struct {
	// ID is the run ID, which is the workflow ID. It may be the ID of an ended run. Default: the
	// spec's name and a random part.
	ID string
	// IsNew reports whether [NewID] generated ID, which is therefore unused.
	IsNew bool
	// Queue is the task queue of the host workers that execute the run. Default:
	// [spec.TaskQueue].
	Queue string
	// Owner is shown in lists of runs. Default: user@host.
	Owner string
	// Host is the only host that can run the tasks, if known. If it is set, the run need not
	// record it.
	Host string
	// Torchrun reports whether the starter exits like torchrun. It also applies to reruns.
	Torchrun bool
	// Source is the source code that the run starts with. It may be nil.
	Source *sourcecode.Gathering `json:"-"`
	// Sweep makes the run a sweep, which runs its spec once per trial. It may be nil.
	Sweep *sweep.Spec
	// Resume is the sweep's initial state. If it is nil, all trials run. Otherwise, Started is
	// when the sweep started.
	Resume  *sweep.Resumption
	Started time.Time
}

// Start validates a spec and starts a run of it. If the spec has problems, Start returns all of
// them and starts nothing. If the run ID is in use, it returns a [*RunningError].
func Start(ctx context.Context, c client.Client, s *spec.RunSpec, o Options) (*Run, error) {
	if s == nil {
		return nil, errors.New("there is no spec; pass one with the run's tasks")
	}
	mayExist := o.ID != "" && !o.IsNew
	if err := o.complete(s); err != nil {
		return nil, err
	}
	workflowType, arguments := spec.WorkflowType, append([]any{s}, o.Source.Result().Arguments()...)
	if o.Sweep != nil {
		o.Sweep.Owner = o.Owner
		workflowType, arguments = spec.SweepWorkflowType, []any{o.Sweep, o.Resume}
	}
	if mayExist {
		if err := isOfKind(ctx, c, o.ID, workflowType); err != nil {
			return nil, err
		}
	}
	options := client.StartWorkflowOptions{
		ID:        o.ID,
		TaskQueue: o.Queue,
		// A second run with an open run's ID would be a mistake. An ended run stays readable
		// under its execution ID.
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowTaskTimeout:                      spec.WorkflowTaskTimeout,
		EnableEagerStart:                         true, // if this client serves the queue
		// Workflow timeouts would close the run without its Release.
		Memo:          runs.Memo(s, o.Owner),
		StaticSummary: runs.Summary(s),
	}
	if o.Sweep != nil {
		if grid, err := o.Sweep.Grid.Parse(); err == nil {
			options.Memo[runs.MemoTasks] = units.Count(grid.Len(), "trial", "trials")
		}
	}
	if o.Torchrun {
		options.Memo[runs.MemoTorchrun] = true
	}
	if !o.Started.IsZero() {
		options.Memo[spec.MemoStarted] = o.Started.UTC().Format(time.RFC3339Nano)
	}
	var w client.WorkflowRun
	err := runs.WithAttributes(runs.Attributes(s, o.Owner, o.Host), func(known temporal.SearchAttributes) (err error) {
		options.TypedSearchAttributes = known
		w, err = c.ExecuteWorkflow(ctx, options, workflowType, arguments...)
		return err
	})
	switch {
	case IsError[*serviceerror.WorkflowExecutionAlreadyStarted](err):
		return nil, &RunningError{ID: o.ID}
	case err != nil:
		return nil, fmt.Errorf("start run %s: %w", o.ID, err)
	}
	return Get(c, w.GetID(), w.GetRunID()), nil
}

// isOfKind returns an error if the run ID belongs to an ended workflow of another type, because
// that workflow's trials or history would be orphaned.
func isOfKind(ctx context.Context, c client.Client, id, workflowType string) error {
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	info := d.GetWorkflowExecutionInfo()
	before := info.GetType().GetName()
	if err != nil || before == workflowType || workflowstatus.IsOpen(info.GetStatus()) {
		return nil //nolint:nilerr // the start has the error
	}
	kind, remedy := "workflow of type "+before, ""
	switch before {
	case spec.SweepWorkflowType:
		kind, remedy = "sweep", ", or remove it with its trials: clusterrun rm "+id
	case spec.TrialWorkflowType:
		kind = "trial of a sweep"
	case spec.WorkflowType:
		kind, remedy = "run", ", or remove it: clusterrun rm "+id
	}
	return fmt.Errorf("the ID %s belongs to a %s that has ended; choose another%s", id, kind, remedy)
}

// complete validates the spec and sets the options that were omitted.
func (o *Options) complete(s *spec.RunSpec) error {
	if err := s.Validate(); err != nil {
		return err
	}
	o.ID = cmp.Or(o.ID, NewID(s.Name))
	if o.Sweep != nil {
		if _, err := o.Sweep.Check(o.ID); err != nil {
			return err
		}
	}
	o.Queue = cmp.Or(o.Queue, spec.TaskQueue)
	if o.Owner == "" {
		o.Owner = defaultOwner()
	}
	return nil
}

// NewID generates a run ID from a name. An empty name counts as "run".
func NewID(name string) string { return runs.NewID(name) }

func defaultOwner() string {
	name := fmt.Sprintf("uid %d", os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

const retryEvery = 300 * time.Millisecond
