package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
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
	s := must.Get(Decode([]byte(`{"cluster": {"worker": ["h:1"]}, "rpc_layer": "grpc+loas"}`), withCommand))(t)
	require.Equal(t, "grpc+loas", s.RPCLayer)
}

func TestSparseClusterSpecIsRefused(t *testing.T) {
	_, err := Decode([]byte(`{"cluster": {"worker": {"0": "h:1"}}}`), withCommand)
	require.EqualError(t, err, `invalid run spec: cluster.worker: is a sparse cluster spec (tasks by index, with gaps), but a run starts every task; write the addresses of all its tasks: ["host-a:2222", "host-b:2222"]`)
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

var somebody = PrefixFields{Type: "worker", Index: 3, Rank: 12, LocalRank: 4, Attempt: 1, Host: "host-a"}

func format(t *testing.T, template string, f PrefixFields) string {
	t.Helper()
	p := must.Get(ParsePrefix(&template))(t)
	return p.Format(f)
}

// MPR-05 shows worker-0's line; the remaining lines were measured.
func TestDefaultPrefix_SEED05(t *testing.T) {
	for typ, want := range map[string]string{
		"chief": "[chief-0]:     ", "worker": "[worker-0]:    ", "ps": "[ps-0]:        ", "evaluator": "[evaluator-0]: ",
		"parameter_server": "[parameter_server-0]: ", // not cut
	} {
		p := must.Get(ParsePrefix(nil))(t)
		assert.Equal(t, want, p.Format(PrefixFields{Type: typ}))
		assert.Equal(t, want, format(t, DefaultPrefix, PrefixFields{Type: typ}))
	}
}

// TR-25, TR-59 and TE-47: any other prefix is used unchanged.
func TestCustomPrefix_TR25_TR59_TE47(t *testing.T) {
	assert.Equal(t, "[rank12]: ", format(t, "[rank${rank}]: ", somebody))
	assert.Equal(t, "[worker-4:12]:", format(t, "[${role_name}-${local_rank}:${rank}]:", somebody))
	assert.Equal(t, "worker3 12 4 1 host-a", format(t, "{{.Type}}{{.Index}} {{ .Rank }} {{.LocalRank}} {{.Restart}} {{.Host}}", somebody))
	assert.Equal(t, "", format(t, "", somebody), "none")
	assert.Equal(t, "$ } }} { plain", format(t, "$ } }} { plain", somebody))
}

func TestBadPrefixes(t *testing.T) {
	for _, text := range []string{"{{", "{{.Rank", "${rank", "{{.Nope}}", "{{range .}}{{end}}", "${RANK}", "{{}}", "${}", "{{printf .Type}}"} {
		_, err := ParsePrefix(&text)
		assert.Error(t, err, text)
	}
}

func masksOf(t *testing.T, text string, ranks int) []Std {
	t.Helper()
	m, err := ParseStd(text)
	require.NoError(t, err, text)
	list := make([]Std, ranks)
	for i := range list {
		list[i] = m.Of(i)
	}
	return list
}

func TestParseStdValue_TE03(t *testing.T) {
	for text, want := range map[string]Std{"0": StdNone, "1": StdOut, "2": StdErr, "3": StdAll} {
		assert.Equal(t, []Std{want, want, want}, masksOf(t, text, 3))
	}
	assert.True(t, StdAll.Out() && StdAll.Err() && StdOut.Out() && StdErr.Err())
	assert.False(t, StdNone.Out() || StdNone.Err() || StdOut.Err() || StdErr.Out())
}

func TestParseStdMap_TE04(t *testing.T) {
	assert.Equal(t, []Std{StdOut, StdNone}, masksOf(t, "0:1", 2))
	assert.Equal(t, []Std{StdOut, StdOut}, masksOf(t, "0:1,1:1", 2))
}

func TestParseStdBadInput_TE05(t *testing.T) {
	for _, text := range []string{"0:1,", "11", "0:1,1", "1,0:1"} {
		_, err := ParseStd(text)
		// The words of SEED-72.
		assert.EqualError(t, err, `"`+text+`" must be 0 (neither stream), 1 (stdout), 2 (stderr), 3 (both), or a list of these by rank; write "3" for all ranks, or "0:3,1-7:1" by rank`)
	}
	for _, text := range []string{"", "4", "-1", " 1", "1 ", "1\n", "0:4", "0:1, 1:1", "-1:1", "0-:1", "-3:1", "a:1", "0:1\n", ":", "٣"} {
		_, err := ParseStd(text)
		assert.Error(t, err, "%q", text)
	}
}

func TestParseStdToMap_TE06(t *testing.T) {
	assert.Equal(t, []Std{StdOut, StdOut}, masksOf(t, "1", 2), "one value spreads to all ranks")
	assert.Equal(t, []Std{StdNone, StdOut}, masksOf(t, "1:1", 2), "ranks left out get none")
	assert.Equal(t, []Std{StdOut, StdErr}, masksOf(t, "0:1,1:2", 2), "a full map is taken as it is")
}

func TestParseStdRepeatedRank_SEED72(t *testing.T) {
	assert.Equal(t, []Std{StdErr, StdAll}, masksOf(t, "0:1,1:3,0:2", 2), "the last counts")
	assert.Equal(t, []Std{StdOut, StdNone, StdOut}, masksOf(t, "0-2:1,1:0", 3))
}

// The seed refuses "10:1" and so cannot name rank 10; we do not copy that.
func TestParseStdRanksBeyondNine(t *testing.T) {
	got := masksOf(t, "10:1,11-13:2", 15)
	assert.Equal(t, []Std{StdNone, StdOut, StdErr, StdErr, StdErr, StdNone}, got[9:])
	assert.Equal(t, []Std{StdAll}, masksOf(t, "000:3", 1))
	for _, text := range []string{"10000:1", "0-10000:1", "99999999999999999999:1"} {
		_, err := ParseStd(text)
		assert.ErrorContains(t, err, "ranks are 0 to 9999", text)
	}
	_, err := ParseStd("3-1:1")
	assert.ErrorContains(t, err, "descending order")
}

func TestZeroMaskIsNone(t *testing.T) {
	assert.Equal(t, StdNone, StdMasks{}.Of(0))
}
