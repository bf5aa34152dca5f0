package activities

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// PlansDir returns the directory of the run plans in a state directory, one file per run.
func PlansDir(stateDir string) string { return filepath.Join(stateDir, "plans") }

// eachPlan calls do with each plan in a state directory until do returns an error.
func eachPlan(stateDir string, do func(text []byte) error) error {
	files, err := filepath.Glob(filepath.Join(PlansDir(stateDir), "*.json"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the run is already closed
		}
		if err == nil {
			err = do(text)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// HeldRuns returns the runs that reserve a state directory's host worker, which may be another
// process.
func HeldRuns(stateDir string) (held []runkey.Run, err error) {
	err = eachPlan(stateDir, func(text []byte) error {
		var p struct {
			Run      runkey.Run `json:"run"`
			Released bool       `json:"released"`
		}
		err := json.Unmarshal(text, &p)
		if err == nil && !p.Released {
			held = append(held, p.Run)
		}
		return err
	})
	return held, err
}
