package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// BenchmarkListOfManyRuns prints the time for the first page of 10,000 past runs on the
// embedded server: through the Go API, and as a command, compared with a command that does
// nothing. The runs have no tasks, but the search attributes and the memo of real ones.
func BenchmarkListOfManyRuns(b *testing.B) {
	const runs = 10_000
	s := harness.StartServer(b, "--headless")
	c := s.Client()
	w := worker.New(c, "many", worker.Options{MaxConcurrentWorkflowTaskPollers: 16})
	w.RegisterWorkflowWithOptions(endsAtOnce, workflow.RegisterOptions{Name: spec.WorkflowType})
	require.NoError(b, w.Start())
	defer w.Stop()
	numbers := make(chan int)
	var starting sync.WaitGroup
	for range 32 {
		starting.Go(func() {
			for n := range numbers {
				r, err := starter.Start(context.Background(), c, &spec.RunSpec{
					Name: fmt.Sprintf("name-%d", n%100), Dir: "/data", Command: []string{"python", "train.py"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: count(8)}},
				}, starter.Options{ID: fmt.Sprintf("many-%d", n), Queue: "many"})
				require.NoError(b, err)
				_, _ = r.Wait(context.Background())
			}
		})
	}
	for n := range runs {
		numbers <- n
	}
	close(numbers)
	starting.Wait()
	harness.Eventually(b, "all are listed", func() bool {
		found, err := starter.List(b.Context(), c, starter.ListOptions{Limit: runs + 1})
		return err == nil && len(found) == runs
	})
	for name, o := range map[string]starter.ListOptions{
		"first page": {Limit: 21}, "failed": {Limit: 21, Failed: true}, "host": {Limit: 21, Host: "host-7"}, "name": {Limit: 21, Name: "name-7"},
		"name*": {Limit: 21, Name: "name-9*"}, "*name": {Limit: 21, Name: "*-98"}, "nothing": {Limit: 21, Name: "nosuch*"}, "owner": {Limit: 21, Owner: "nobody@nowhere"},
		"cause": {Limit: 21, Cause: "oom"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := starter.List(b.Context(), c, o)
				require.NoError(b, err)
			}
			b.ReportMetric(ms(b.Elapsed())/float64(b.N), "ms")
		})
	}
	for name, args := range map[string][]string{"command": {"list"}, "command --name": {"list", "--name", "name-7"}, "floor": {"version"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				code, _, stderr := s.CLI(b, args...)
				require.Zero(b, code, stderr)
			}
			b.ReportMetric(ms(b.Elapsed())/float64(b.N), "ms")
		})
	}
}

// endsAtOnce is a run without tasks: a tenth of them fails.
func endsAtOnce(ctx workflow.Context, _ json.RawMessage) (*spec.RunResult, error) {
	var n int
	_, _ = fmt.Sscanf(workflow.GetInfo(ctx).WorkflowExecution.ID, "many-%d", &n)
	verdict, cause, code := spec.VerdictSucceeded, spec.CauseCompleted, "0"
	if n%10 == 0 {
		verdict, cause, code = spec.VerdictFailed, spec.CauseOrigin, "1"
	}
	err := workflow.UpsertTypedSearchAttributes(ctx,
		temporal.NewSearchAttributeKeyKeyword(spec.AttributeVerdict).ValueSet(string(verdict)),
		temporal.NewSearchAttributeKeyKeyword(spec.AttributeCause).ValueSet(string(cause)),
		temporal.NewSearchAttributeKeyKeyword(spec.AttributeExitCode).ValueSet(code),
		temporal.NewSearchAttributeKeyKeywordList(spec.AttributeHost).ValueSet([]string{fmt.Sprintf("host-%d", n%8)}),
	)
	if err == nil && verdict == spec.VerdictFailed {
		err = temporal.NewNonRetryableApplicationError("it failed", spec.ErrSubprocess, nil)
	}
	return &spec.RunResult{Verdict: verdict}, err
}
