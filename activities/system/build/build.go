// Package build distinguishes builds of our programs.
package build

import (
	"runtime"
	"runtime/debug"
)

// ID identifies this program's build by its version, which for builds in a git checkout contains
// the commit and whether files were modified, and by the version of Go.
func ID() string {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	return version + " " + runtime.Version()
}
