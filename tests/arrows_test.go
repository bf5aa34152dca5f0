package tests

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

const module = "github.com/clusterrun/clusterrun/"

// layers are the program's parts from the top down, by folder: the picture in
// workflows/DESIGN.md. A package belongs to the most specific folder that contains it, and may
// import from its own layer and lower ones.
var layers = [][]string{
	{"starter/clusterrun", "starter/clusterrun-supervisor"},
	{"starter/command"},
	{"starter/command/cli"},
	{"starter"},
	{"workers"},
	{"activities"},
	{"activities/server"},
	{"activities/tasks"},
	{"activities/logs"},
	{"activities/process"},
	{"activities/trust"},
	{"activities/system"},
	{"workflows"},
	{"workflows/spec"},
	{"workflows/text", "workflows/stacktree", "workflows/exitcode"},
}

// forbidden imports point down but are still wrong.
var forbidden = map[string][]string{
	// Runs are started by workflow name, so package starter does not need process code.
	"starter":                       {"workflows", "activities", "workers"},
	"starter/command":               {"workflows", "activities"},
	"activities/process/supervisor": {"workflows/spec", "workflows/lifecycle"},
}

// withTemporal lists the packages under workflows and activities that may import Temporal.
var withTemporal = map[string]bool{"workflows/closures/queue": true, "workflows/runs": true, "activities/server": true, "activities/tasks/closurequeue": true, "activities/trust/codec": true, "activities/system/servererror": true, "activities/system/workflowstatus": true}

func TestArrowsPointDown(t *testing.T) {
	for pkg, imports := range importsOf(t) {
		at := layerOf(pkg)
		require.GreaterOrEqual(t, at, 0, "%s has no place in the picture", pkg)
		for _, target := range imports {
			name, ours := strings.CutPrefix(target, module)
			if !ours {
				continue
			}
			assert.GreaterOrEqual(t, layerOf(name), at, "%s imports %s, which is above it", pkg, name)
			assert.NotContains(t, forbidden[pkg], name, "%s imports %s", pkg, name)
		}
		if (strings.HasPrefix(pkg, "workflows/") || strings.HasPrefix(pkg, "activities/")) && !withTemporal[pkg] {
			for _, target := range imports {
				assert.NotContains(t, target, "go.temporal.io", "%s is free of Temporal", pkg)
			}
		}
	}
}

// A host's supervisor starts with each run and stays with each process, so every process pays for
// its dependencies.
func TestTheSupervisorIsSmall(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./starter/clusterrun-supervisor")
	cmd.Dir = ".."
	for pkg := range strings.Lines(string(must.Get(cmd.Output())(t))) {
		for _, heavy := range []string{"go.temporal.io/", "google.golang.org/", "go.uber.org/", "net/http", "text/template", "html/template"} {
			assert.False(t, strings.HasPrefix(pkg, heavy), "it needs %s", pkg)
		}
	}
}

// layerOf returns a package's layer, or -1.
func layerOf(pkg string) int {
	at, longest := -1, 0
	for i, folders := range layers {
		for _, folder := range folders {
			if (pkg == folder || strings.HasPrefix(pkg, folder+"/")) && len(folder) > longest {
				at, longest = i, len(folder)
			}
		}
	}
	return at
}

// importsOf returns each package's imports in this module, without tests.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir = ".."
	out := must.Get(cmd.Output())(t)
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

// The map names functions by file. Each must exist in that file.
func TestFunctionsOfTheMap(t *testing.T) {
	page := string(must.Get(os.ReadFile("../workflows/DESIGN.md"))(t))
	named := regexp.MustCompile("`([a-z/]+\\.go):(\\w+)`").FindAllStringSubmatch(page, -1)
	require.Greater(t, len(named), 30)
	for _, n := range named {
		code := string(must.Get(os.ReadFile("../" + n[1]))(t))
		assert.Regexp(t, `(?m)^func (\([^)]*\) )?`+n[2]+`[(\[]`, code, "%s has no function %s", n[1], n[2])
	}
}
