package activities

import (
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/tasks/python"
)

// installHook returns the directory with the hook for Python programs of tasks. Tasks start
// without it if it cannot be written.
func installHook(c Config) string {
	dir, err := python.InstallHook(c.StateDir)
	if err != nil {
		c.Log.Warn("stacks will not show the lines of Python programs", zap.Error(err))
		return ""
	}
	return dir
}
