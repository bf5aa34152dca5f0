package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/activities/trust/signatures"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Use identifies what a signature is used for.
type Use struct {
	// Namespace, Workflow and Run identify the run's execution. If they are empty, the signature is
	// only checked, and not used up.
	Namespace string `json:"namespace"`
	Workflow  string `json:"workflow"`
	Run       string `json:"run"`
	// Generation and Launch identify the started task.
	Generation int `json:"generation,omitempty"`
	Launch     int `json:"launch,omitempty"`
}

// noted is the content of a file in the state directory.
type noted struct {
	Use
	Expires string `json:"expires"`
}

// again reports whether a signature that was used for u may also be used for next.
func (u Use) again(next Use) bool {
	sameRun := u.Namespace == next.Namespace && u.Workflow == next.Workflow && u.Run == next.Run
	return sameRun && (next.Generation > u.Generation || next.Generation == u.Generation && next.Launch == u.Launch)
}

// use records the use of a signature, or returns why the signature must not be used. g.using must
// be held.
func (g *Guard) use(id, expires string, by Use) error {
	file := filepath.Join(g.usedDir, id+".json")
	b, err := os.ReadFile(file)
	var before noted
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if signatures.Expired(spec.Signature{Expires: expires}, g.now()) {
			return fmt.Errorf("it expired at %s", expires)
		}
	case err != nil:
		return err
	case json.Unmarshal(b, &before) != nil:
		return fmt.Errorf("the record of its use, %s, is damaged", file)
	case before.Use == by:
		return nil
	case !before.again(by):
		return errors.New("it has been used before; sign again")
	}
	if by.Run == "" {
		return nil
	}
	if err := os.MkdirAll(g.usedDir, 0o700); err != nil {
		return err
	}
	if b, err = json.Marshal(noted{by, expires}); err != nil {
		return err
	}
	return atomicfile.Write(file, b, 0o600)
}

// keepNotes is how long a signature's note is kept after the signature has expired. It must exceed
// the time from the use of a signature until the run's plan is on disk.
const keepNotes = time.Hour

// Forget removes the notes of expired signatures if their runs are no longer on this host.
func (g *Guard) Forget(isHere func(Use) bool) error {
	if !g.HasPolicy() {
		return nil
	}
	g.using.Lock()
	defer g.using.Unlock()
	files, err := filepath.Glob(filepath.Join(g.usedDir, "*.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		var n noted
		b, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(b, &n) != nil || !signatures.Expired(spec.Signature{Expires: n.Expires}, g.now().Add(-keepNotes)) || isHere(n.Use) {
			continue
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}
