package devserver

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// A database of an earlier version gets the search attributes that it does not know, beside
// those of its users, and keeps the columns of the others.
func TestAttributesOfAnEarlierVersion(t *testing.T) {
	d := &database{path: filepath.Join(t.TempDir(), "runs.db")}
	require.NoError(t, d.prepare(t.Context()))
	old, err := sqliteschema.NewNamespaceConfig(clusterName, "default", false, map[string]enumspb.IndexedValueType{
		"ClusterRunOwner": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "Mine": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"One": enumspb.INDEXED_VALUE_TYPE_INT, "Two": enumspb.INDEXED_VALUE_TYPE_INT,
	})
	require.NoError(t, err)
	require.NoError(t, sqliteschema.CreateNamespaces(d.config(), old))

	for range 2 {
		p := start(t, "--db", d.path)
		known, err := p.client().OperatorService().ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: "default"})
		require.NoError(t, err)
		want := maps.Clone(searchAttributes)
		maps.Copy(want, map[string]enumspb.IndexedValueType{
			"Mine": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "One": enumspb.INDEXED_VALUE_TYPE_INT, "Two": enumspb.INDEXED_VALUE_TYPE_INT,
		})
		delete(want, "ClusterRunTasks") // there are three columns of this type
		assert.Equal(t, want, known.GetCustomAttributes())
		p.kill()
	}
}

func TestAttributesKeepTheirColumns(t *testing.T) {
	columns := map[string]string{"Keyword07": "ClusterRunOwner", "Int02": "Mine"}
	before := maps.Clone(columns)
	addColumns(columns)
	for column, name := range before {
		assert.Equal(t, name, columns[column])
	}
	assert.Equal(t, append(slices.Sorted(maps.Keys(searchAttributes)), "Mine"), slices.Sorted(maps.Values(columns)))
}
