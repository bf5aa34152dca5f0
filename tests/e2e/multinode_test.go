package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/stretchr/testify/assert"
)

// A program for TF_CONFIG trains on three hosts: the chief and a worker on one, workers and a
// parameter server on the remaining two. Their only connection is their addresses.
func TestTFConfigOnThreeHosts(t *testing.T) {
	t.Parallel()
	h := newOnHosts(t, 3)
	spec := must.Get(os.ReadFile(filepath.Join(harness.Root(), "starter/examples/logistic/run.yaml")))(t)
	h.write("run.yaml", string(spec))
	assert.Regexp(t, `accuracy`, h.ok(h.args(h.Agent, "--id", "logistic", "-H", "a:2,b:2,c:2", "--dir", harness.Root(), "run.yaml")...))
	stdout := h.ok("wait", "--json", "logistic")
	assert.Contains(t, strings.ReplaceAll(stdout, " ", ""), `"accuracy":0.9`)
	for _, host := range h.Hosts {
		assert.Regexp(t, regexp.QuoteMeta(fmt.Sprintf("%q", host.Name)), stdout)
	}
	h.gone()
}

// Before anything starts, the hosts check that they reach rank 0's host at the address that their
// tasks would receive.
func TestRankZeroCannotBeReached(t *testing.T) {
	t.Parallel()
	h := newOnHosts(t, 2)
	// A network where only ssh reaches a.
	firewall := h.agent("firewall", `[ "$1" = a ] && ip netns exec `+h.Netns(h.Hosts[1])+` ip route replace unreachable `+h.Hosts[0].Address+`/32
exec `+h.Agent+` "$@"`)
	code, stdout, stderr := h.run(h.args(firewall, "--set", "placement_timeout=10s", "-H", "a,b", "--", "echo", "started")...)
	assert.Equal(t, 125, code, stderr)
	assert.Empty(t, stdout)
	assert.Regexp(t, `worker-1 could not be placed on host b: host b cannot reach a, which has rank 0, by its address `+regexp.QuoteMeta(h.Hosts[0].Address)+` \(MASTER_ADDR\): dial tcp .*: no route to host; connect their networks`, stderr)
	h.gone()

	stdout = h.ok(h.args(firewall, "-H", "a,b", "--set", "env_profiles=[tensorflow]", "--", "echo", "started")...)
	assert.Equal(t, 2, strings.Count(stdout, "started\n"), "without MASTER_ADDR nobody needs that address")
	h.gone()
}
