package command

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestHosts(t *testing.T) {
	hosts, err := parseHosts("a:4, b,c:1")
	require.NoError(t, err)
	assert.Equal(t, []hostSlots{{"a", 4}, {"b", 1}, {"c", 1}}, hosts)
	for _, bad := range []string{"", "a,,b", ":4", "a:0", "a:-1", "a:many"} {
		_, err := parseHosts(bad)
		assert.ErrorContains(t, err, ";", "%q has no remedy", bad)
	}
}

func TestHostfile(t *testing.T) {
	hosts, err := parseHostfile(strings.NewReader("# hosts\na slots=4 max_slots=8\n\nb:2 # MPICH\nc\n"))
	require.NoError(t, err)
	assert.Equal(t, []hostSlots{{"a", 4}, {"b", 2}, {"c", runtime.NumCPU()}}, hosts)
	for text, want := range map[string]string{
		"":              "it names no host",
		"# nothing\n":   "it names no host",
		"a slots=x":     `line 1: "x" is no number of slots`,
		"a\nb sluts=1":  `line 2: "sluts=1" is not understood`,
		"a\n\n:3":       "line 3: a host's name is empty",
		"a slots=4 b:2": "not understood",
	} {
		_, err := parseHostfile(strings.NewReader(text))
		assert.ErrorContains(t, err, want, "%q", text)
	}
}

func TestThisMachine(t *testing.T) {
	own, err := os.Hostname()
	require.NoError(t, err)
	for _, name := range []string{"localhost", "127.0.0.1", "127.3.2.1", "::1", own} {
		assert.True(t, isThisMachine(name), name)
	}
	for _, name := range []string{"elsewhere.example", "192.0.2.1"} {
		assert.False(t, isThisMachine(name), name)
	}
}

func TestPrepareHere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	own, err := os.Hostname()
	require.NoError(t, err)
	s := &spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Addresses: []string{"localhost:1", "127.0.0.1:2", own + ":3"}}}}
	require.NoError(t, prepareHere(s))
	assert.Equal(t, dir, s.Dir, "the current directory is filled in")

	s.Tasks[0].Addresses = []string{"localhost:1", "192.0.2.1:2", "elsewhere.example"}
	err = prepareHere(s)
	var usage *usageError
	require.ErrorAs(t, err, &usage)
	require.Len(t, usage.problems, 2)
	assert.Contains(t, usage.problems[0], `tasks[0].addresses[1]: "192.0.2.1" is not this machine`)
	assert.Contains(t, usage.problems[1], "clusterrun worker --host-name elsewhere.example")
}

func TestPrepareHereRefusesOtherHosts(t *testing.T) {
	for want, hosts := range map[string]spec.Hosts{
		"":                              {Count: new(1), PerHost: new(2), Strategy: spec.StrategySpread, Exclusive: true},
		"hosts.count is 2":              {Count: new(2)},
		"hosts.per_host is 1, for 2":    {PerHost: new(1)},
		"hosts.select chooses hosts":    {Select: []string{"a"}},
		"hosts.constraints choose host": {Constraints: []string{"cpus > 1"}},
	} {
		err := prepareHere(&spec.RunSpec{Dir: "/", Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2)}}, Hosts: hosts})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "clusterrun submit")
	}
}
