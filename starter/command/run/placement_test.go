package run

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestPrepareHere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	own, err := os.Hostname()
	require.NoError(t, err)
	s := &spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Addresses: []string{"localhost:1", "127.0.0.1:2", own + ":3"}}}}
	require.NoError(t, prepareHere(s, runOptions{}))
	assert.Equal(t, dir, s.Dir, "the current directory is filled in")

	s.Tasks[0].Addresses = []string{"localhost:1", "192.0.2.1:2", "elsewhere.example"}
	err = prepareHere(s, runOptions{})
	var usage *cli.UsageError
	require.ErrorAs(t, err, &usage)
	require.Len(t, usage.Problems, 2)
	assert.Contains(t, usage.Problems[0], `tasks[0].addresses[1]: "192.0.2.1" is not this machine`)
	assert.Contains(t, usage.Problems[1], "clusterrun worker --host-name elsewhere.example")
}

func TestPrepareHereRefusesOtherHosts(t *testing.T) {
	for want, hosts := range map[string]spec.Hosts{
		"":                                 {Count: "1", PerHost: new(2), Strategy: spec.StrategySpread, Exclusive: true},
		"hosts.count (or --nnodes) is 2":   {Count: "2"},
		"hosts.count (or --nnodes) is 1:2": {Count: "1:2"},
		"hosts.per_host is 1, for 2":       {PerHost: new(1)},
		"hosts.select chooses hosts":       {Select: []string{"a"}},
		"hosts.constraints choose host":    {Constraints: []string{"cpus > 1"}},
	} {
		err := prepareHere(&spec.RunSpec{Dir: "/", Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2)}}, Hosts: hosts}, runOptions{})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "clusterrun submit")
	}
}
