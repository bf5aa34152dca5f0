package supervise

import (
	"runtime"
	"runtime/debug"
)

// BuildID identifies this program's build by its version and that of Go. For a build in a git
// checkout, the version contains the commit, and whether files were modified.
func BuildID() string {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	return version + " " + runtime.Version()
}
