// Package plans finds run plans in a host worker's state directory, one file per run, which package
// activities reads and writes. It handles only what a supervisor needs.
package plans

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// Dir returns the plans' directory in a state directory.
func Dir(stateDir string) string { return filepath.Join(stateDir, "plans") }

// Each calls do with each plan in a state directory until do returns an error.
func Each(stateDir string, do func(text []byte) error) error {
	files, err := filepath.Glob(filepath.Join(Dir(stateDir), "*.json"))
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

// Held returns the runs that reserve a state directory's host worker, which may be another process.
func Held(stateDir string) (held []runkey.Run, err error) {
	err = Each(stateDir, func(text []byte) error {
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
