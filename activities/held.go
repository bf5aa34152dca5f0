package activities

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// Held returns the runs that have reserved the host worker with that state directory and not
// released it. The host worker may be another process.
func Held(stateDir string) ([]runkey.Run, error) {
	files, err := filepath.Glob(filepath.Join(plansIn(stateDir), "*.json"))
	if err != nil {
		return nil, err
	}
	var held []runkey.Run
	for _, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the run has been closed meanwhile
		}
		if err != nil {
			return nil, err
		}
		var p plan
		if err := json.Unmarshal(b, &p); err != nil {
			return nil, err
		}
		if !p.Released {
			held = append(held, p.Run)
		}
	}
	return held, nil
}
