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
