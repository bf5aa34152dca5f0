package tests

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/clusterrun/clusterrun/"

// levels are the packages from the top down: each may import those below it,
// and those of its own line only where both are named in peers. It is the
// picture of workflows/DESIGN.md.
var levels = [][]string{
	{"starter/clusterrun", "deployments/release"},
	{"starter/command", "starter/pool"},
	{"starter/record/trace"},
	{"starter/coordinate", "starter/record", "starter/top", "workers/service", "starter/doctor", "starter/doctor/debugbundle"},
	{"starter/clustercoordinator"},
	{"starter", "starter/hosts/remotehosts", "starter/hosts/agents"},
	{"starter/rundir"},
	{"workers"},
	{"workers/connect"},
	{"workers/embedded"},
	{"workflows", "workflows/closurequeue"},
	{"activities"},
	{"activities/server"},
	{"activities/tasks/taskservices"},
	{"activities/tasks/closures", "activities/tasks/closurequeue"},
	{"activities/tasks/taskapi", "activities/tasks/barriers", "activities/logs/hostservice", "activities/tasks/python"},
	{"activities/trust/guard"},
	{"activities/logs/retention"},
	{"activities/logs/shipped"},
	{"activities/tasks/task", "activities/process/supervisor", "activities/logs/tasklog", "activities/process/taskenv", "activities/process/resources"},
	{"activities/process/tcpstore", "activities/process/supervisor/internal/wire", "activities/process/supervisor/internal/early", "activities/tasks/wire", "activities/system/news", "activities/system/background", "activities/process/stacks", "activities/process/evidence", "activities/tasks/task/coordinator", "activities/tasks/task/pmi"},
	{"activities/trust/codec", "activities/system/servererror", "activities/system/retry", "activities/system/filelock", "activities/system/atomicfile", "activities/system/pty", "activities/system/strictjson", "activities/trust/policy", "activities/system/metrics", "activities/trust/signatures", "activities/system/hostuser"},
	{"activities/system/undumpable", "activities/system/runkey", "activities/system/detach", "activities/system/privatedir"},
	{"workflows/lifecycle", "workflows/barrier", "workflows/closures", "workflows/fleet"},
	{"workflows/closure", "workflows/steptime"},
	{"starter/launchers/mpirun"},
	{"starter/hosts/hostlist", "starter/launchers/torchrun", "starter/help"},
	{"workflows/spec", "workflows/text/markdown"},
	{"workflows/text/shorten", "workflows/text/plural", "workflows/text/lazyregexp", "workflows/stacktree"},
}

// forbidden are arrows that point down and are still wrong.
var forbidden = map[string][]string{
	// A run is started by name: whoever starts one needs no process code.
	"starter":                       {"workflows", "activities", "workers"},
	"starter/command":               {"workflows", "activities"},
	"activities/process/supervisor": {"workflows/spec", "workflows/lifecycle"},
}

// withTemporal are the packages below workflows and activities that know Temporal.
var withTemporal = map[string]bool{"workflows/closurequeue": true, "activities/server": true, "activities/tasks/closurequeue": true, "activities/trust/codec": true, "activities/system/servererror": true}

func TestArrowsPointDown(t *testing.T) {
	level := map[string]int{}
	for i, names := range levels {
		for _, name := range names {
			level[name] = i
		}
	}
	for pkg, imports := range importsOf(t) {
		at, known := level[pkg]
		if !assert.True(t, known, "%s has no place in the picture", pkg) {
			continue
		}
		for _, target := range imports {
			if name, ours := strings.CutPrefix(target, module); ours {
				assert.Greater(t, level[name], at, "%s imports %s", pkg, name)
				assert.NotContains(t, forbidden[pkg], name, "%s imports %s", pkg, name)
			}
		}
		if (strings.HasPrefix(pkg, "workflows/") || strings.HasPrefix(pkg, "activities/")) && !withTemporal[pkg] {
			for _, target := range imports {
				assert.NotContains(t, target, "go.temporal.io", "%s is free of Temporal", pkg)
			}
		}
	}
}

// importsOf are the imports of each of our packages, tests left out.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		if !strings.HasPrefix(pkg, "tests") {
			all[pkg] = fields[1:]
		}
	}
	require.NotEmpty(t, all)
	return all
}
