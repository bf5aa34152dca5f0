package bench

import (
	"path/filepath"
	"slices"
	"strconv"
)

// Start returns the command line that starts n copies of a program with a launcher. It writes
// files for the launcher to dir.
type Start func(dir string, n int, argv []string) ([]string, error)

// Launcher contains a launcher's command lines. A field is nil if the launcher does not support
// it.
type Launcher struct {
	Name string
	// Launch starts copies, and exits when they have exited.
	Launch Start
	// Restart restarts a copy when it fails.
	Restart Start
	// End stops all copies when one fails.
	End Start
	// Tee writes all copies' output to stdout, with a prefix on each line.
	Tee Start
	// Stays reports whether the command keeps running after the copies have exited.
	Stays bool
	// Beside returns the command's required processes that are not its descendants.
	Beside func() []int
}

// Clusterrun is the program with that path and its own state directory.
func Clusterrun(program, stateDir string, beside func() []int) *Launcher {
	run := func(flags ...string) Start {
		return func(_ string, n int, argv []string) ([]string, error) {
			line := append([]string{program, "run", "--state-dir", stateDir, "-n", strconv.Itoa(n)}, flags...)
			return append(append(line, "--"), argv...), nil
		}
	}
	return &Launcher{
		Name: "clusterrun", Beside: beside,
		Launch: run(), Restart: run("--max-restarts", "1"), End: run(), Tee: run(),
	}
}

// WithChief runs clusterrun with a chief and n-1 more tasks. When the chief exits, the rest are
// stopped immediately.
func WithChief(program, stateDir string) Start {
	return func(_ string, n int, argv []string) ([]string, error) {
		return append([]string{
			program, "run", "--state-dir", stateDir, "--set", "chief_grace=0s",
			"--task", "chief=1", "--task", "worker=" + strconv.Itoa(n-1), "--",
		}, argv...), nil
	}
}

// Shell is the floor: a shell that only starts processes.
func Shell() *Launcher {
	script := func(text string) Start {
		return func(_ string, n int, argv []string) ([]string, error) {
			return slices.Concat([]string{"/bin/sh", "-c", text, "sh", strconv.Itoa(n)}, argv), nil
		}
	}
	const copies = `n=$1; shift; i=0; while [ $i -lt $n ]; do i=$((i+1)); `
	return &Launcher{
		Name:    "a bare shell",
		Launch:  script(copies + `"$@" & done; wait`),
		Restart: script(`shift; until "$@"; do :; done`),
		End:     script(copies + `{ "$@"; kill 0; } & done; wait`),
		Tee:     script(copies + `"$@" | sed "s/^/[worker-$i]: /" & done; wait`),
	}
}

// StateDir returns clusterrun's state directory at a place.
func (p *Place) StateDir() string { return filepath.Join(p.Dir, "state") }
