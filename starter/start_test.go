package starter_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func validSpec() *spec.RunSpec {
	n := 2
	return &spec.RunSpec{Name: "iris", Command: []string{"true"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: &n}}}
}

// started returns a client that accepts a start and records its options.
func started(t *testing.T, options *client.StartWorkflowOptions) *mocks.Client {
	run := mocks.NewWorkflowRun(t)
	run.On("GetID").Return("iris-1").Maybe()
	run.On("GetRunID").Return("execution").Maybe()
	c := mocks.NewClient(t)
	c.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, "").Return(nil, serviceerror.NewNotFound("")).Maybe()
	c.On("ExecuteWorkflow", mock.Anything, mock.Anything, spec.WorkflowType, mock.Anything).
		Run(func(args mock.Arguments) { *options = args.Get(1).(client.StartWorkflowOptions) }).
		Return(run, nil).Once()
	return c
}

func TestStart(t *testing.T) {
	var o client.StartWorkflowOptions
	r := must.Get(starter.Start(t.Context(), started(t, &o), validSpec(), starter.Options{Owner: "me@here"}))(t)
	assert.Equal(t, "iris-1", r.ID)
	assert.Equal(t, "execution", r.ExecutionID)

	assert.Regexp(t, regexp.MustCompile(`^iris-[a-z0-9]{8}$`), o.ID)
	assert.Equal(t, spec.TaskQueue, o.TaskQueue)
	assert.Equal(t, enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL, o.WorkflowIDConflictPolicy)
	assert.Equal(t, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, o.WorkflowIDReusePolicy)
	assert.Equal(t, spec.WorkflowTaskTimeout, o.WorkflowTaskTimeout)
	assert.Zero(t, o.WorkflowRunTimeout)
	assert.Zero(t, o.WorkflowExecutionTimeout)
	assert.Equal(t, map[string]any{"owner": "me@here", "name": "iris", "tasks": "worker=2", "command": "true", "dir": ""}, o.Memo)
	assert.Equal(t, "worker=2: true", o.StaticSummary)
}

func TestStartTakesIDAndQueue(t *testing.T) {
	var o client.StartWorkflowOptions
	_, err := starter.Start(t.Context(), started(t, &o), validSpec(), starter.Options{ID: "mine", Queue: "private"})
	require.NoError(t, err)
	assert.Equal(t, "mine", o.ID)
	assert.Equal(t, "private", o.TaskQueue)
}

// A newly generated ID is not checked for an earlier workflow.
func TestStartAsksNothingAboutANewID(t *testing.T) {
	run := mocks.NewWorkflowRun(t)
	run.On("GetID").Return("iris-1")
	run.On("GetRunID").Return("execution")
	c := mocks.NewClient(t)
	c.On("ExecuteWorkflow", mock.Anything, mock.Anything, spec.WorkflowType, mock.Anything).Return(run, nil).Once()
	_, err := starter.Start(t.Context(), c, validSpec(), starter.Options{ID: starter.NewID("iris"), IsNew: true})
	require.NoError(t, err)
}

// An invalid spec causes no request to the server.
func TestStartRefusesAnInvalidSpec(t *testing.T) {
	_, err := starter.Start(t.Context(), mocks.NewClient(t), &spec.RunSpec{}, starter.Options{})
	var invalid *spec.InvalidSpecError
	require.ErrorAs(t, err, &invalid)
	assert.NotEmpty(t, invalid.Problems)
}

// A run that reuses an ended sweep's ID would hide the sweep, and rm would leave its trials
// behind.
func TestStartRefusesAnIDOfAnotherKind(t *testing.T) {
	for before, want := range map[string]string{
		spec.SweepWorkflowType: "the ID mine belongs to a sweep that has ended; choose another, or remove it with its trials: clusterrun rm mine",
		spec.TrialWorkflowType: "the ID mine belongs to a trial of a sweep that has ended; choose another",
		"Order":                "the ID mine belongs to a workflow of type Order that has ended; choose another",
	} {
		c := mocks.NewClient(t)
		c.On("DescribeWorkflowExecution", mock.Anything, "mine", "").Return(&workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Type: &commonpb.WorkflowType{Name: before}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
		}}, nil)
		_, err := starter.Start(t.Context(), c, validSpec(), starter.Options{ID: "mine"})
		require.EqualError(t, err, want)
	}
}

// SEED-84: an ID in use is refused.
func TestStartRefusesAnIDInUse(t *testing.T) {
	c := mocks.NewClient(t)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(&workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}, nil)
	c.On("ExecuteWorkflow", mock.Anything, mock.Anything, mock.Anything, mock.Anything).
		Return(nil, serviceerror.NewWorkflowExecutionAlreadyStarted("started", "", "")).Once()
	_, err := starter.Start(t.Context(), c, validSpec(), starter.Options{ID: "iris-1"})
	var running *starter.RunningError
	require.ErrorAs(t, err, &running)
	assert.EqualError(t, err, "run iris-1 is already running; choose another ID, or stop that run first")
}

// A namespace with only some of the search attributes, or none, gets the run with those that it
// supports.
func TestStartWithoutSearchAttributes(t *testing.T) {
	c := mocks.NewClient(t)
	with := func(names ...string) any {
		return mock.MatchedBy(func(o client.StartWorkflowOptions) bool {
			for _, name := range names {
				if !slices.ContainsFunc(slices.Collect(maps.Keys(o.TypedSearchAttributes.GetUntypedValues())),
					func(k temporal.SearchAttributeKey) bool { return k.GetName() == name }) {
					return false
				}
			}
			return o.TypedSearchAttributes.Size() == len(names)
		})
	}
	unknown := func(name string) error {
		return serviceerror.NewInvalidArgument("Namespace default has no mapping defined for search attribute " + name)
	}
	run := mocks.NewWorkflowRun(t)
	run.On("GetID").Return("iris-1")
	run.On("GetRunID").Return("execution")
	var all []string
	for _, a := range spec.Attributes() {
		all = append(all, a.Name)
	}
	c.On("ExecuteWorkflow", mock.Anything, with(all...), mock.Anything, mock.Anything).
		Return(nil, unknown(spec.AttributeCause)).Once()
	c.On("ExecuteWorkflow", mock.Anything, with(spec.AttributeOwner, spec.AttributeVerdict, spec.AttributeHost), mock.Anything, mock.Anything).
		Return(nil, unknown(spec.AttributeHost)).Once()
	c.On("ExecuteWorkflow", mock.Anything, with(spec.AttributeOwner, spec.AttributeVerdict), mock.Anything, mock.Anything).
		Return(nil, unknown(spec.AttributeVerdict)).Once()
	c.On("ExecuteWorkflow", mock.Anything, with(spec.AttributeOwner), mock.Anything, mock.Anything).
		Return(nil, unknown(spec.AttributeOwner)).Once()
	c.On("ExecuteWorkflow", mock.Anything, with(), mock.Anything, mock.Anything).Return(run, nil).Once()
	_, err := starter.Start(context.Background(), c, validSpec(), starter.Options{})
	require.NoError(t, err)
}

func TestStartWithoutASpec(t *testing.T) {
	_, err := starter.Start(t.Context(), &mocks.Client{}, nil, starter.Options{})
	assert.ErrorContains(t, err, "there is no spec")
}

// Start a chief and three workers, show their output, and inspect the chief's return value.
func Example() {
	ctx := context.Background()
	c, err := client.DialContext(ctx, envconfig.MustLoadDefaultClientOptions()) // the server of `eval "$(clusterrun server env)"`
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	three := 3
	run, err := starter.Start(ctx, c, &spec.RunSpec{
		Name:    "iris",
		Command: []string{"python3", "train.py"},
		Dir:     "/srv/job",
		Tasks:   []spec.TaskGroup{{Type: "chief"}, {Type: "worker", Count: &three}},
	}, starter.Options{})
	if err != nil {
		log.Fatal(err) // the error lists all problems with an invalid spec
	}

	if err := run.Logs(ctx, func(o starter.Output) { fmt.Printf("%s: %s", o.Task, o.Data) }); err != nil {
		log.Print(err) // some output could not be read
	}
	result, err := run.Wait(ctx)
	var failed *starter.Error
	switch {
	case errors.As(err, &failed):
		fmt.Println("the root cause was", failed.Result.FirstFailure.Task)
	case err != nil:
		log.Fatal(err) // terminated, or no such run
	default:
		fmt.Printf("%s returned %s\n", result.Tasks[0].Name, result.Tasks[0].Value)
	}
}

// Inspect a run that another program started, and stop one of its tasks.
func ExampleGet() {
	ctx := context.Background()
	c, err := client.DialContext(ctx, envconfig.MustLoadDefaultClientOptions())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	run := starter.Get(c, "iris-x2k4", "")
	status, err := run.Status(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range status.Tasks {
		fmt.Println(t.Name, t.State, t.PID, t.Restarts)
	}
	if _, err := starter.Ask(ctx, run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-1"}}); err != nil {
		log.Fatal(err)
	}
}
