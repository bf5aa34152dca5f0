package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

var (
	verdictKey  = temporal.NewSearchAttributeKeyKeyword(spec.AttributeVerdict)
	causeKey    = temporal.NewSearchAttributeKeyKeyword(spec.AttributeCause)
	exitCodeKey = temporal.NewSearchAttributeKeyKeyword(spec.AttributeExitCode)
	hostKey     = temporal.NewSearchAttributeKeyKeywordList(spec.AttributeHost)
	tasksKey    = temporal.NewSearchAttributeKeyInt64(spec.AttributeTasks)
	restartsKey = temporal.NewSearchAttributeKeyInt64(spec.AttributeRestarts)
)

// searched returns a world with a run that is started with those attributes. It appends the run's
// changes to noted.
func searched(t *testing.T, set ...temporal.SearchAttributeUpdate) (w *world, noted *[]string) {
	w = newWorld(t)
	w.SetContinueAsNewSuggested(false)
	require.NoError(t, w.SetMemoOnStart(runs.Memo(&spec.RunSpec{}, "ada")))
	noted = &[]string{}
	require.NoError(t, w.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(set...)))
	w.OnUpsertTypedSearchAttributes(mock.Anything).Return(nil).Maybe().Run(func(args mock.Arguments) {
		var event []string
		for key, value := range args.Get(0).(temporal.SearchAttributes).GetUntypedValues() {
			event = append(event, fmt.Sprint(strings.TrimPrefix(key.GetName(), "ClusterRun"), " ", value))
		}
		slices.Sort(event)
		*noted = append(*noted, strings.Join(event, ", "))
	})
	return w, noted
}

// A run's initial attributes stay up to date, even after its group moves to another host and
// however it ends.
func TestSearchAttributesAreKept(t *testing.T) {
	none := []temporal.SearchAttributeUpdate{verdictKey.ValueSet(spec.AttributeNone), hostKey.ValueSet([]string{spec.AttributeNone})}
	twice := groupSpec
	twice.MaxRestarts = new(2)

	w, noted := searched(t, none...)
	w.hosts = []string{"a", "a", "b"}
	require.Error(t, w.start(t, twice, nil))
	assert.Equal(t, []string{"Host [a]", "Host [b]", "Verdict failed"}, *noted)

	w, noted = searched(t, none[0])
	require.Error(t, w.start(t, spec.RunSpec{}, nil))
	assert.Equal(t, []string{"Verdict failed"}, *noted, "the other one is not known to the namespace")

	w, noted = searched(t)
	require.Error(t, w.start(t, spec.RunSpec{}, nil))
	assert.Empty(t, *noted, "started without, by an older starter or for a namespace that has registered none")

	w, noted = searched(t, none...)
	w.hosts = []string{strings.Repeat("x", 300)}
	require.Error(t, w.start(t, spec.RunSpec{}, nil))
	assert.Equal(t, []string{"Verdict failed"}, *noted, "a name that databases do not take")
}

// A run that was started without attributes sets those that the namespace has, and keeps them
// current. A child that clusterrun's package started has the owner that it was given.
func TestSearchAttributesOfOtherStarters(t *testing.T) {
	w, noted := searched(t, temporal.NewSearchAttributeKeyKeyword("Theirs").ValueSet("x"))
	register(w.TestWorkflowEnvironment, activities{
		spec.ActivityKnownAttributes: func(context.Context) ([]string, error) {
			return []string{spec.AttributeOwner, spec.AttributeVerdict, spec.AttributeHost}, nil
		},
	})
	require.Error(t, w.start(t, spec.RunSpec{}, nil))
	assert.Equal(t, []string{"Host [none], Owner ada, Verdict none", "Host [a]", "Verdict failed"}, *noted)
}

// A run that was started with all attributes needs one event for its end, and one if its group
// moves. A group that restarts repeatedly needs few.
func TestSearchAttributesCostFewEvents(t *testing.T) {
	all := []temporal.SearchAttributeUpdate{
		verdictKey.ValueSet(spec.AttributeNone), causeKey.ValueSet(spec.AttributeNone), exitCodeKey.ValueSet(spec.AttributeNone),
		hostKey.ValueSet([]string{"a"}), tasksKey.ValueSet(2), restartsKey.ValueSet(0),
	}
	w, noted := searched(t, all...)
	w.hosts = []string{"a"}
	require.Error(t, w.start(t, spec.RunSpec{}, nil))
	assert.Equal(t, []string{"Tasks 1", "Cause origin, ExitCode 3, Verdict failed"}, *noted)

	again := groupSpec
	again.MaxRestarts = new(9)
	w, noted = searched(t, all...)
	w.hosts = []string{"a", "a", "a", "b"}
	require.Error(t, w.start(t, again, nil))
	assert.Equal(t, []string{
		"Tasks 1", "Restarts 1", "Restarts 2", "Host [b], Restarts 3", "Restarts 4", "Restarts 8",
		"Cause origin, ExitCode 3, Restarts 9, Verdict failed",
	}, *noted)
}

// Lists also show a run that another SDK has started. An execution that continues a run has its
// memo.
func TestFactsForLists(t *testing.T) {
	for name, c := range map[string]struct {
		memo   map[string]any
		writes bool
	}{
		"by clusterrun":   {runs.Memo(&spec.RunSpec{}, "ada"), false},
		"by another SDK":  {nil, true},
		"with their memo": {map[string]any{"theirs": 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.SetContinueAsNewSuggested(false)
			if c.memo != nil {
				require.NoError(t, w.SetMemoOnStart(c.memo))
			}
			var noted []map[string]any
			w.OnUpsertMemo(mock.Anything).Return(nil).Maybe().Run(func(args mock.Arguments) {
				noted = append(noted, args.Get(0).(map[string]any))
			})
			require.Error(t, w.start(t, spec.RunSpec{Name: "iris"}, nil))
			if !c.writes {
				assert.Empty(t, noted)
				return
			}
			require.Len(t, noted, 1)
			assert.Equal(t, "iris", noted[0][runs.MemoName])
			assert.Equal(t, "worker=1", noted[0][runs.MemoTasks])
			assert.Equal(t, "x", noted[0][runs.MemoCommand])
		})
	}
}
