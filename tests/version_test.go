package tests

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// All parts of a release use the same version.
func TestOneVersion(t *testing.T) {
	for file, line := range map[string]string{
		"../CHANGELOG.md": "\n## [" + spec.Version + "]",
		"../activities/tasks/python/pyproject.toml": "\nversion = \"" + spec.Version + "\"\n",
		"../activities/tasks/taskapi/openapi.yaml":  "\n  version: " + spec.Version + "\n",
	} {
		text := must.Get(os.ReadFile(file))(t)
		assert.Contains(t, string(text), line, file)
	}
	assert.DirExists(t, "../workflows/testdata/replay/v"+spec.Version, "make record records its histories")
}

// programs lists the distributed programs, each with its module.
var programs = []struct{ name, module, pkg string }{
	{"clusterrun", "..", "./starter/clusterrun"},
	{"clusterrun-supervisor", "..", "./starter/clusterrun-supervisor"},
	{"clusterrun-devserver", "../deployments/devserver", "./clusterrun-devserver"},
}

// licenses map each license to a phrase that only it contains.
var licenses = []struct{ phrase, name string }{
	{"apache license version 2.0", "Apache-2.0"},
	{"apache license, version 2.0", "Apache-2.0"},
	{"mozilla public license version 2.0", "MPL-2.0"},
	{"mozilla public license, version 2.0", "MPL-2.0"},
	{"permission is hereby granted, free of charge", "MIT"},
	{"permission to use, copy, modify, and/or distribute", "ISC"},
	{"permission to use, copy, modify, and distribute", "ISC"},
	{"used to endorse or promote products", "BSD-3-Clause"},
	{"creative commons", "Creative Commons"},
	{"general public license", "GPL"},
	{"this is free and unencumbered software", "Unlicense"},
}

// The licenses of all modules in the programs are listed, so that changes are noticed.
func TestLicenses(t *testing.T) {
	const name = "../deployments/licenses.md"
	license, in := map[string]string{}, map[string][]string{}
	for _, p := range programs {
		// go.sum is read so that the test cache depends on it.
		_, err := os.ReadFile(filepath.Join(p.module, "go.sum"))
		require.NoError(t, err)
		cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not (or .Main .Replace)}}{{.Path}} {{.Dir}}{{end}}{{end}}", p.pkg)
		cmd.Dir = p.module
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
		out := must.Get(cmd.Output())(t)
		modules := strings.Split(strings.TrimSpace(string(out)), "\n")
		slices.Sort(modules)
		for _, line := range slices.Compact(modules) {
			if module, dir, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(module, "github.com/clusterrun/clusterrun") {
				license[module] = licenseOf(t, dir)
				in[module] = append(in[module], p.name)
			}
		}
	}
	var b strings.Builder
	fmt.Fprintln(&b, "# Licences\n\nThose of the modules that our programs are made of. `go test ./tests -run Licenses -update`\nwrites this file.\n\n| module | licence | in |\n| --- | --- | --- |")
	for _, module := range slices.Sorted(maps.Keys(license)) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", module, license[module], strings.Join(in[module], ", "))
	}
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(b.String()), 0o644))
		return
	}
	written := must.Get(os.ReadFile(name))(t)
	assert.Equal(t, string(written), b.String(), "go test ./tests -run Licenses -update")
}

// licenseOf names the licenses in a module's directory.
func licenseOf(t *testing.T, dir string) string {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	var found []string
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		if e.IsDir() || !strings.HasPrefix(name, "license") && !strings.HasPrefix(name, "licence") && !strings.HasPrefix(name, "copying") {
			continue
		}
		text := must.Get(os.ReadFile(filepath.Join(dir, e.Name())))(t)
		words := strings.Join(strings.Fields(strings.ToLower(string(text))), " ")
		for _, l := range licenses {
			// Other licenses mention the GPL as compatible.
			if strings.Contains(words, l.phrase) && (l.name != "GPL" || !slices.Contains(found, "MPL-2.0")) {
				found = append(found, l.name)
			}
		}
		if strings.Contains(words, "redistribution and use in source and binary forms") && !slices.Contains(found, "BSD-3-Clause") {
			found = append(found, "BSD-2-Clause")
		}
	}
	slices.Sort(found)
	if len(found) == 0 {
		return "none found"
	}
	return strings.Join(slices.Compact(found), " AND ")
}
