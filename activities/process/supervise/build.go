package supervise

import (
	"runtime"
	"runtime/debug"
)

// BuildID identifies this program's build by its version, which for builds in a git checkout
// contains the commit and whether files were modified, and by the version of Go.
func BuildID() string {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	return version + " " + runtime.Version()
}
