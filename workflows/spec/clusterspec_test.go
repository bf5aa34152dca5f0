package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func withCommand(s *RunSpec) { s.Command = []string{"./train"} }

func taskNames(s *RunSpec) []string {
	var list []string
	for _, t := range s.TaskList() {
		list = append(list, t.Name()+"@"+t.Address)
	}
	return list
}

func TestClusterSpecIsARunSpec(t *testing.T) {
	want := []string{"chief-0@c:1", "master-0@m:1", "worker-0@h:1", "worker-1@h:2", "ps-0@h:3", "evaluator-0@e:1", "alpha-0@a:1", "beta-0@b:1"}
	bare := `{"ps": ["h:3"], "beta": ["b:1"], "alpha": ["a:1"], "evaluator": ["e:1"], "worker": ["h:1", "h:2"], "master": ["m:1"], "chief": ["c:1"], "none": []}`
	for _, doc := range []string{
		bare,
		`{"cluster": ` + bare + `}`,
		`{"cluster": ` + bare + `, "task": {"type": "worker", "index": 1}, "rpc_layer": null, "environment": "cloud"}`,
	} {
		s, err := Decode([]byte(doc), withCommand)
		require.NoError(t, err, doc)
		assert.Equal(t, want, taskNames(s))
		requireStable(t, s)
		s, err = DecodeYAML([]byte(doc), withCommand)
		require.NoError(t, err, doc)
		assert.Equal(t, want, taskNames(s))
	}
}

func TestClusterSpecKeepsRPCLayer(t *testing.T) {
	s, err := Decode([]byte(`{"cluster": {"worker": ["h:1"]}, "rpc_layer": "grpc+loas"}`), withCommand)
	require.NoError(t, err)
	require.Equal(t, "grpc+loas", s.RPCLayer)
}

func TestSparseClusterSpecIsRefused(t *testing.T) {
	_, err := Decode([]byte(`{"cluster": {"worker": {"0": "h:1"}}}`), withCommand)
	require.EqualError(t, err, `invalid run spec: cluster.worker: is a sparse cluster spec (tasks by index, some left out), but a run starts every task; write the addresses of all its tasks: ["host-a:2222", "host-b:2222"]`)
}

// Two chiefs are two chiefs in either form (SEED-03).
func TestClusterSpecWithTwoChiefs_SEED03(t *testing.T) {
	_, err := Decode([]byte(`{"chief": ["h:1", "h:2"], "worker": ["h:3"]}`), withCommand)
	require.ErrorContains(t, err, "If chief exists in the cluster, there must be at most one chief. Current `cluster_spec` has 2 chiefs.")
}

func TestWhatIsNoClusterSpec(t *testing.T) {
	for _, doc := range []string{
		`{"worker": ["h:1"], "command": ["x"]}`, `{"cluster": ["h:1"]}`, `{"cluster": {"worker": []}, "tasks": []}`, `{"trainer": ["h:1"]}`,
	} {
		_, err := Decode([]byte(doc))
		require.ErrorContains(t, err, "not a field of a run spec", doc)
	}
}

func TestFromClusterSpecCopies(t *testing.T) {
	cluster := map[string][]string{"worker": {"h:1"}, "ps": nil}
	s := FromClusterSpec(cluster)
	cluster["worker"][0] = "changed"
	require.Equal(t, &RunSpec{Tasks: []TaskGroup{{Type: "worker", Addresses: []string{"h:1"}}}}, s)
}
