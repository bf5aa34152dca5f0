package starter

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/starter/source"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Options configure how a run is started.
type Options struct {
	// ID is the run ID, which is the workflow ID. It may be the ID of an ended run. Default:
	// the spec's name and a random part.
	ID string
	// Queue is the task queue of the host workers that execute the run. Default:
	// [spec.TaskQueue].
	Queue string
	// Owner is shown in lists of runs. Default: user@host.
	Owner string
	// Host is the only host that can have the tasks, if it is known. The run then need not
	// record it.
	Host string
	// Source is the source code that the run is started with. It may be nil.
	Source *source.Gathering
}

// Start validates a spec and starts a run of it. If the spec has problems, Start returns all of
// them and starts nothing. If the run ID is in use, it returns a [*RunningError].
func Start(ctx context.Context, c client.Client, s *spec.RunSpec, o Options) (*Run, error) {
	if err := o.complete(s); err != nil {
		return nil, err
	}
	options := client.StartWorkflowOptions{
		ID:        o.ID,
		TaskQueue: o.Queue,
		// A second run with the ID of an open run would be a mistake. An ended run stays
		// readable under its execution ID.
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowTaskTimeout:                      spec.WorkflowTaskTimeout,
		EnableEagerStart:                         true, // if this client serves the queue
		// No workflow timeouts: they would close the run without its Release.
		Memo:          memo(s, o),
		StaticSummary: summary(s),
	}
	var w client.WorkflowRun
	arguments := append([]any{s}, o.Source.Result().Arguments()...)
	err := withAttributes(attributes(s, o), func(known temporal.SearchAttributes) (err error) {
		options.TypedSearchAttributes = known
		w, err = c.ExecuteWorkflow(ctx, options, spec.WorkflowType, arguments...)
		return err
	})
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &running):
		return nil, &RunningError{ID: o.ID}
	case err != nil:
		return nil, fmt.Errorf("start run %s: %w", o.ID, err)
	}
	return Get(c, w.GetID(), w.GetRunID()), nil
}

// complete validates a spec that will be run and sets the options that were left out.
func (o *Options) complete(s *spec.RunSpec) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if o.ID == "" {
		o.ID = NewID(s.Name)
	}
	if o.Queue == "" {
		o.Queue = spec.TaskQueue
	}
	if o.Owner == "" {
		o.Owner = defaultOwner()
	}
	return nil
}

// NewID makes a run ID for a name. An empty name counts as "run".
func NewID(name string) string {
	if name == "" {
		name = "run"
	}
	var random [5]byte
	_, _ = rand.Read(random[:]) // it never fails
	return name + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(random[:]))
}

const (
	memoOwner   = "owner"
	memoName    = "name"
	memoTasks   = "tasks"
	memoCommand = "command"
	memoDir     = "dir"
	// memoSilence is the silence limit of the spec, if it has one.
	memoSilence = "silence"
)

// memo returns the facts that lists show of a run in addition to its search attributes.
func memo(s *spec.RunSpec, o Options) map[string]any {
	m := map[string]any{memoOwner: o.Owner, memoName: s.Name, memoTasks: cluster(s), memoCommand: commandLine(s), memoDir: s.Dir}
	if s.Silence != "" {
		m[memoSilence] = s.Silence
	}
	return m
}

// commandLine returns the command of the first tasks, cut to fit into a list.
func commandLine(s *spec.RunSpec) string {
	words := s.Command
	if len(words) == 0 && len(s.Tasks) > 0 {
		words = s.Tasks[0].Command
	}
	return shorten.Text(strings.Join(words, " "), 200)
}

// summary returns the line that the Web UI shows for a run. The server takes at
// most 400 bytes.
func summary(s *spec.RunSpec) string {
	line := markdown.Name(cluster(s))
	if len(s.Command) > 0 {
		const most = 200
		line += ": " + markdown.Inline(strings.Join(s.Command, " "), most)
	}
	return line
}

// cluster returns for example "chief=1 worker=3".
func cluster(s *spec.RunSpec) string {
	var groups []string
	for _, g := range s.Tasks {
		groups = append(groups, fmt.Sprintf("%s=%d", g.Type, g.Size()))
	}
	return strings.Join(groups, " ")
}

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
