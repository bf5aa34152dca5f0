package closure

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

func requestProblems(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var invalid *spec.InvalidRequestError
	require.ErrorAs(t, err, &invalid)
	var list []string
	for _, p := range invalid.Problems {
		assert.NotEmpty(t, p.Remedy)
		list = append(list, p.Path+": "+p.Message)
	}
	return list
}

func TestValidateNamesEveryProblem(t *testing.T) {
	long := strings.Repeat("x", MaxFunctionName+1)
	for name, c := range map[string]struct {
		change func(*SyncRequest)
		want   []string
	}{
		"valid": {func(*SyncRequest) {}, nil},
		"all of it": {func(r *SyncRequest) {
			r.Closures[0] = Closure{
				Function: strings.Repeat("ü", MaxFunctionName/2), Args: json.RawMessage(` [1, {"$clusterrun.resource": 7}]`),
				Kwargs: json.RawMessage(`{"a": {"$clusterrun.resource": 8}}`), Resources: []uint64{7, 8},
				Task: "worker-3",
			}
			r.Resources = []Resource{{ID: 7, Function: "load"}, {ID: 8, Function: "load"}}
		}, nil},
		"resource not defined": {func(r *SyncRequest) { r.Closures[0].Resources = []uint64{3} },
			[]string{"closures[0].resources: has 3, which is not among the request's resources"}},
		"no client, no number":     {func(r *SyncRequest) { r.Client, r.First = "", 0 }, []string{"client: missing", "first: missing"}},
		"client with a line break": {func(r *SyncRequest) { r.Client = "a\nb" }, []string{`client: "a\nb" is not a valid name`}},
		"too many":                 {func(r *SyncRequest) { r.Closures = repeated(r.Closures[0], MaxBatch+1) }, []string{"closures: has 1001; a request may have at most 1000"}},
		"as many as may be":        {func(r *SyncRequest) { r.Closures = repeated(r.Closures[0], MaxBatch) }, nil},
		"too large together": {func(r *SyncRequest) {
			r.Closures[0].Args = json.RawMessage(`["` + strings.Repeat("x", 200<<10) + `"]`)
			r.Closures = repeated(r.Closures[0], 3)
		}, []string{"closures: arguments and names have 614427 bytes in total; a request may have at most 524288"}},
		"too large": {func(r *SyncRequest) {
			r.Closures[0].Kwargs = json.RawMessage(`{"x":"` + strings.Repeat("x", MaxBytes) + `"}`)
		}, []string{"closures[0].args: the arguments have 262152 bytes; at most 262144 are allowed"}},
		"no function":       {func(r *SyncRequest) { r.Closures[0].Function = "" }, []string{"closures[0].function: missing"}},
		"long function":     {func(r *SyncRequest) { r.Closures[0].Function = long }, []string{`closures[0].function: "` + long[:60] + `…" has 201 bytes; a function's name may have at most 200`}},
		"function of bytes": {func(r *SyncRequest) { r.Closures[0].Function = "f\xff" }, []string{`closures[0].function: "f\xff" is not a valid function name`}},
		"args not JSON":     {func(r *SyncRequest) { r.Closures[0].Args = json.RawMessage(`[1,]`) }, []string{`closures[0].args: is not JSON: "[1,]"`}},
		"args of bytes":     {func(r *SyncRequest) { r.Closures[0].Args = json.RawMessage("[\"\xff\"]") }, []string{`closures[0].args: is not JSON: "[\"\xff\"]"`}},
		"args an object":    {func(r *SyncRequest) { r.Closures[0].Args = json.RawMessage(`{}`) }, []string{`closures[0].args: must be a JSON array, not "{}"`}},
		"kwargs null":       {func(r *SyncRequest) { r.Closures[0].Kwargs = json.RawMessage(`null`) }, []string{`closures[0].kwargs: must be a JSON object, not "null"`}},
		"too many resources": {func(r *SyncRequest) {
			r.Closures[0].Resources = make([]uint64, 101)
			r.Resources = []Resource{{ID: 1, Function: "load"}}
		},
			[]string{"closures[0].resources: has 101; a closure may use at most 100 resources"}},
		"task": {func(r *SyncRequest) { r.Closures[0].Task = "worker" }, []string{`closures[0].task: "worker" is not a task name`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := SyncRequest{Client: "c", First: 1, Closures: []Closure{{Function: "train"}}}
			c.change(&r)
			assert.Equal(t, c.want, requestProblems(t, r.Validate()))
		})
	}
}

func repeated(c Closure, n int) []Closure {
	list := make([]Closure, n)
	for i := range list {
		list[i] = c
	}
	return list
}

// A request full of mistakes reports only the first hundred.
func TestValidateScheduleIsBounded(t *testing.T) {
	r := SyncRequest{Client: "c", First: 1, Closures: make([]Closure, MaxBatch)}
	assert.Len(t, requestProblems(t, r.Validate()), 100)
}

func TestValidateResources(t *testing.T) {
	r := SyncRequest{Client: "c", Released: []uint64{1}}
	assert.NoError(t, r.Validate())
	r.Resources = []Resource{{Kwargs: json.RawMessage(`[]`)}}
	assert.Equal(t, []string{
		"resources[0].id: is 0", "resources[0].function: missing", `resources[0].kwargs: must be a JSON object, not "[]"`,
	}, requestProblems(t, r.Validate()))
}

func TestClosureError(t *testing.T) {
	var err error = &Error{Kind: "ValueError", Message: "no"}
	assert.EqualError(t, err, "ValueError: no")
	assert.EqualError(t, &Error{Kind: "ValueError", Message: "ValueError: no"}, "ValueError: no")
	var ours *Error
	assert.True(t, errors.As(err, &ours))
}
