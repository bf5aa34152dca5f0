package specs

import (
	"context"
	"path/filepath"

	"github.com/clusterrun/clusterrun/starter/sourcecode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// WorkTree starts querying the git work tree from which a run is started. It looks for one at the
// directory that the run ships, at its working directory, and at its program. It returns nil if the
// spec sets record_source: false.
func WorkTree(ctx context.Context, s *spec.RunSpec) *sourcecode.Gathering {
	if s.RecordSource != nil && !*s.RecordSource {
		return nil
	}
	var dirs []string
	if s.Ship.Dir != "" {
		dirs = append(dirs, s.Ship.Dir)
	}
	dirs = append(dirs, s.Dir) // if empty, this command's directory
	commands := [][]string{s.Command}
	for _, g := range s.Tasks {
		commands = append(commands, g.Command)
	}
	for _, command := range commands {
		for _, word := range command {
			if filepath.IsAbs(word) {
				dirs = append(dirs, filepath.Dir(word))
			}
		}
	}
	return sourcecode.Begin(ctx, dirs...)
}
