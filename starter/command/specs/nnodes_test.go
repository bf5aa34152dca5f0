package specs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestNodesInTorchrunsWords(t *testing.T) {
	s, err := specFrom(t, "", "--nnodes", "2:4", "--nproc-per-node", "3", "--join-wait", "5s", "--grow", "next-generation", "./train")
	require.NoError(t, err)
	assert.Equal(t, &spec.RunSpec{
		Name: "train", Command: []string{"./train"}, Tasks: ranks(12), Hosts: spec.Hosts{Count: "2:4", PerHost: ptr(3)},
		Elastic:      spec.Elastic{JoinWait: ptr(spec.Duration(5e9)), Grow: spec.GrowNextGeneration},
		RestartScope: spec.RestartScopeGroup, MaxRestarts: ptr(0),
	}, s)
	s, err = specFrom(t, "", "--nnodes", "3", "./train")
	require.NoError(t, err)
	assert.Equal(t, &spec.RunSpec{Name: "train", Command: []string{"./train"}, Tasks: ranks(3), Hosts: spec.Hosts{Count: "3"}}, s)
	s, err = specFrom(t, "{tasks: [{type: worker, count: 8}], max_restarts: 2, restart_scope: group}", "--nnodes", "2:4", "-", "--", "./train")
	require.NoError(t, err)
	assert.Equal(t, &spec.RunSpec{
		Name: "train", Command: []string{"./train"}, Tasks: ranks(8), Hosts: spec.Hosts{Count: "2:4"},
		RestartScope: spec.RestartScopeGroup, MaxRestarts: ptr(2),
	}, s)
}

func TestNodesThatCannotBe(t *testing.T) {
	for want, args := range map[string][]string{
		`--nnodes "4:2": give a number of hosts`:             {"--nnodes", "4:2"},
		`--nnodes "two": give a number of hosts`:             {"--nnodes", "two"},
		`--nnodes "0:2": give a number of hosts`:             {"--nnodes", "0:2"},
		"--nnodes 1:2: -H or --hostfile names 2":             {"--nnodes", "1:2", "-H", "a,b"},
		"--nnodes 2 and --hosts 3 contradict each other":     {"--nnodes", "2", "--hosts", "3"},
		"--nproc-per-node gpu: hosts of a fleet may have":    {"--nnodes", "2", "--nproc-per-node", "gpu"},
		"-n 5 and --nproc-per-node 2 on 4 hosts contradict":  {"--nnodes", "2:4", "-n", "5", "--nproc-per-node", "2"},
		"hosts.count: 5 tasks on at most 4 hosts are not":    {"--nnodes", "2:4", "-n", "5"},
		"restart_scope: a run on 2:4 hosts restarts all tas": {"--hosts", "2:4", "-n", "4"},
		"--join-wait: has no effect without a range":         {"--nnodes", "2", "--join-wait", "1s"},
	} {
		_, err := specFrom(t, "", append(args, "./train")...)
		require.ErrorContains(t, err, want)
	}
}
