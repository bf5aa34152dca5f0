package main

import (
	"bufio"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// licenses is a table of all modules, which a test keeps.
const licenses = "deployments/licenses.md"

// bom is a bill of materials in the form of CycloneDX 1.6. cyclonedx-gomod has one program in each
// and the time at which it was run, and guesses licences.
type bom struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type     string    `json:"type"`
	Ref      string    `json:"bom-ref"`
	Name     string    `json:"name"`
	Version  string    `json:"version"`
	PURL     string    `json:"purl,omitempty"`
	Licenses []license `json:"licenses,omitempty"`
}

type license struct {
	Expression string `json:"expression,omitempty"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

// writeSBOM lists the modules that programs were built from.
func writeSBOM(w io.Writer, programs []string, when time.Time) error {
	known, err := readLicenses()
	if err != nil {
		return err
	}
	whole := component{Type: "application", Ref: "clusterrun", Name: "clusterrun", Version: spec.Version}
	list := bom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{when.Format(time.RFC3339), whole}}
	parts := dependency{Ref: whole.Ref}
	modules := map[string]component{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return err
		}
		one := component{Type: "application", Ref: "program:" + filepath.Base(program), Name: filepath.Base(program), Version: spec.Version}
		uses := dependency{Ref: one.Ref}
		deps := append(info.Deps, &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")})
		for _, m := range deps {
			if m.Replace != nil { // by what is ours
				continue
			}
			ref := "pkg:golang/" + m.Path + "@" + m.Version
			c := component{Type: "library", Ref: ref, Name: m.Path, Version: m.Version, PURL: ref}
			if l := known[m.Path]; l != "" {
				c.Licenses = []license{{l}}
			}
			modules[ref] = c
			uses.On = append(uses.On, ref)
		}
		list.Components = append(list.Components, one)
		list.Dependencies = append(list.Dependencies, uses)
		parts.On = append(parts.On, one.Ref)
	}
	list.Dependencies = append(list.Dependencies, parts)
	for _, ref := range slices.Sorted(maps.Keys(modules)) {
		list.Components = append(list.Components, modules[ref])
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(list)
}

// readLicenses returns the licence of each module, where its name is one of SPDX.
func readLicenses() (map[string]string, error) {
	f, err := os.Open(licenses)
	if err != nil {
		return nil, fmt.Errorf("%w; run this in the root of the repository", err)
	}
	defer f.Close()
	of := map[string]string{"stdlib": "BSD-3-Clause"}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		cells := strings.Split(lines.Text(), " | ")
		if len(cells) == 3 && strings.Contains(cells[1], "-") || len(cells) == 3 && (cells[1] == "MIT" || cells[1] == "ISC") {
			of[strings.TrimPrefix(cells[0], "| ")] = cells[1]
		}
	}
	return of, lines.Err()
}
