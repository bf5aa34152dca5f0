package barriers

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// keepFor limits the age of numbers from runs that never released the host.
const keepFor = 30 * 24 * time.Hour

// store keeps the number of each barrier's next round in a file, for this host's next worker. Each
// run has a directory. A number that is too low is safe, because the host finds the later rounds
// closed.
type store struct {
	dir    string
	log    *zap.Logger
	failed sync.Once
}

func openStore(stateDir string, log *zap.Logger) *store {
	s := &store{dir: filepath.Join(stateDir, "barriers"), log: log}
	runs, _ := os.ReadDir(s.dir)
	for _, run := range runs {
		if info, err := run.Info(); err == nil && time.Since(info.ModTime()) > keepFor {
			_ = os.RemoveAll(filepath.Join(s.dir, run.Name()))
		}
	}
	return s
}

// number returns a barrier's next round.
func (s *store) number(run spec.RunRef, name string) int {
	b, _ := os.ReadFile(s.path(run, name))
	n, _ := strconv.Atoi(string(b)) // without a number, the server is asked, starting at round 0
	return n
}

func (s *store) set(run spec.RunRef, name string, next int) {
	path := s.path(run, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = atomicfile.Write(path, []byte(strconv.Itoa(next)), 0o600)
	}
	if err != nil {
		s.failed.Do(func() {
			s.log.Warn("could not store a barrier's number; after a restart, the server is asked instead", zap.Error(err))
		})
	}
}

func (s *store) forget(run spec.RunRef, name string) { _ = os.Remove(s.path(run, name)) }

func (s *store) drop(run runKey) { _ = os.RemoveAll(s.of(run)) }

func (s *store) of(run runKey) string {
	return filepath.Join(s.dir, digest(run.workflowID+"\x00"+run.runID))
}

func (s *store) path(run spec.RunRef, name string) string {
	return filepath.Join(s.of(keyOf(run)), digest(strconv.Itoa(run.Generation)+"\x00"+name))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}
