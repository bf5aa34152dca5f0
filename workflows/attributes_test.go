package workflows_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

var (
	verdictKey = temporal.NewSearchAttributeKeyKeyword(spec.AttributeVerdict)
	hostKey    = temporal.NewSearchAttributeKeyKeywordList(spec.AttributeHost)
)

// searched is a world whose run is started with those attributes, and notes what the
// run sets.
func searched(t *testing.T, set ...temporal.SearchAttributeUpdate) (w *world, noted *[]string) {
	w = newWorld(t)
	w.SetContinueAsNewSuggested(false)
	noted = &[]string{}
	require.NoError(t, w.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(set...)))
	w.OnUpsertTypedSearchAttributes(mock.Anything).Return(nil).Maybe().Run(func(args mock.Arguments) {
		for key, value := range args.Get(0).(temporal.SearchAttributes).GetUntypedValues() {
			*noted = append(*noted, fmt.Sprint(key.GetName(), " ", value))
		}
	})
	return w, noted
}

// What a run was started with it keeps true: also when its group moves to another
// host, and whatever its end.
func TestSearchAttributesAreKept(t *testing.T) {
	none := []temporal.SearchAttributeUpdate{verdictKey.ValueSet(spec.AttributeNone), hostKey.ValueSet([]string{spec.AttributeNone})}
	twice := groupSpec
	twice.MaxRestarts = new(2)

	w, noted := searched(t, none...)
	w.hosts = []string{"a", "a", "b"}
	require.Error(t, w.start(t, twice, nil))
	assert.Equal(t, []string{"ClusterRunHost [a]", "ClusterRunHost [b]", "ClusterRunVerdict failed"}, *noted)

	w, noted = searched(t, none[0])
	require.Error(t, w.start(t, spec.RunSpec{}, nil))
	assert.Equal(t, []string{"ClusterRunVerdict failed"}, *noted, "the other one is not known to the namespace")

	w, noted = searched(t)
	require.Error(t, w.start(t, spec.RunSpec{}, nil))
	assert.Empty(t, *noted, "started without, by an older starter or for a namespace that has registered none")

	w, noted = searched(t, none...)
	w.hosts = []string{strings.Repeat("x", 300)}
	require.Error(t, w.start(t, spec.RunSpec{}, nil))
	assert.Equal(t, []string{"ClusterRunVerdict failed"}, *noted, "a name that databases do not take")
}
