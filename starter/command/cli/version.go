package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Build describes this program's build.
type Build struct {
	Version string `json:"version"`
	// Commit is known if the program was built in a git checkout. Modified reports whether the
	// checkout had uncommitted changes.
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	SDK      string `json:"temporal_sdk,omitempty"`
}

func BuildInfo() Build {
	b := Build{Version: spec.Version, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	for _, d := range info.Deps {
		if d.Path == "go.temporal.io/sdk" {
			b.SDK = d.Version
		}
	}
	return b
}

func VersionLine() string {
	b := BuildInfo()
	line := "clusterrun " + b.Version
	switch {
	case b.Modified:
		line += " (" + b.Commit[:min(12, len(b.Commit))] + ", modified)"
	case b.Commit != "":
		line += " (" + b.Commit[:min(12, len(b.Commit))] + ")"
	}
	return fmt.Sprintf("%s, %s, Temporal SDK %s", line, b.Go, b.SDK)
}
