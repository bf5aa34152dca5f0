package activities

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// logRoot returns the directory below which the logs of a run with that spec are stored here.
func (sh *shipping) logRoot(s *spec.RunSpec) string {
	if sh.LogsCopiedTo != "" {
		return sh.LogRoot // the directory of the spec is on the owner's machine
	}
	return cmp.Or(s.Logs.Dir, sh.LogRoot)
}

// told returns the path below the logs that the run is told: the path of the copy, if logs
// are copied.
func (h *Host) told(p *plan, path string) string {
	if h.LogsCopiedTo == "" || p == nil {
		return path
	}
	root := cmp.Or(p.Spec.Logs.Dir, h.LogsCopiedTo)
	if root == spec.NullDir {
		return ""
	}
	rest, below := strings.CutPrefix(path, p.LogRoot)
	if !below {
		return path
	}
	return root + rest
}

// describe returns the exit as the run is told it, and the value of the task.
func (h *Host) describe(p *plan, q supervisor.Process) (spec.Exit, json.RawMessage) {
	e, value := h.describeExit(p, q)
	e.LogDir, e.ErrorFile = h.told(p, e.LogDir), h.told(p, e.ErrorFile)
	return e, value
}
