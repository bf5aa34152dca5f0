// Package build tells builds of our programs apart.
package build

import (
	"runtime"
	"runtime/debug"
)

// ID names the build of this program: its version, which has the commit and whether files were
// modified if it was built in a git checkout, and the version of Go.
func ID() string {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	return version + " " + runtime.Version()
}
