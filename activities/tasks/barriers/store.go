package barriers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// keepAfter is the maximum delay of a write. A number that is too low is safe, because the
	// host finds the later rounds closed.
	keepAfter = time.Second
	// keepFor limits the age of numbers from runs that never released the host.
	keepFor = 30 * 24 * time.Hour
)

// store keeps each barrier's next round number, in a small file per run.
type store struct {
	dir string
	log *zap.Logger

	// writing is held while files are changed, which may be slow, and is locked before mu.
	writing sync.Mutex
	failed  bool

	mu    sync.Mutex
	files map[runKey]*numbers
	dirty map[runKey]bool
	timed bool
}

// numbers is a file's content.
type numbers struct {
	Run   spec.RunRef    `json:"run"`
	Names map[string]int `json:"names"`
}

func openStore(stateDir string, log *zap.Logger) (*store, error) {
	s := &store{dir: filepath.Join(stateDir, "barriers"), log: log, files: map[runKey]*numbers{}, dirty: map[runKey]bool{}}
	paths, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > keepFor {
			_ = os.Remove(path)
			continue
		}
		var n numbers
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, &n)
		}
		if err != nil {
			// The server supplies the numbers again, starting at round 0.
			log.Warn("could not read the barriers' numbers; asking the server instead", zap.String("file", path), zap.Error(err))
			continue
		}
		s.files[keyOf(n.Run)] = &n
	}
	return s, nil
}

// number returns a barrier's next round. The number may be too low.
func (s *store) number(run spec.RunRef, name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.files[keyOf(run)]; n != nil && n.Run == run {
		return n.Names[name]
	}
	return 0
}

func (s *store) set(run spec.RunRef, name string, next int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.files[keyOf(run)]
	switch {
	case n != nil && n.Run.Generation > run.Generation:
		return
	case n == nil || n.Run != run:
		n = &numbers{Run: run, Names: map[string]int{}}
		s.files[keyOf(run)] = n
	}
	n.Names[name] = next
	s.touch(keyOf(run))
}

func (s *store) forget(run spec.RunRef, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.files[keyOf(run)]; n != nil && n.Run == run {
		delete(n.Names, name)
		s.touch(keyOf(run))
	}
}

func (s *store) touch(key runKey) {
	s.dirty[key] = true
	if !s.timed {
		s.timed = true
		time.AfterFunc(keepAfter, s.flush)
	}
}

// flush writes the changed files without fsync, because old numbers are safe.
func (s *store) flush() {
	s.writing.Lock()
	defer s.writing.Unlock()
	for key, n := range s.changed() {
		b, err := json.Marshal(n)
		if err == nil {
			err = os.MkdirAll(s.dir, 0o700)
		}
		if err == nil {
			err = atomicfile.Write(s.path(key), b, 0o600)
		}
		if err != nil && !s.failed {
			s.log.Warn("could not store the barriers' numbers; after a restart, the server is asked instead", zap.Error(err))
		}
		s.failed = err != nil
	}
}

// changed returns the new content of the changed files.
func (s *store) changed() map[runKey]numbers {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timed = false
	all := map[runKey]numbers{}
	for key := range s.dirty {
		all[key] = numbers{s.files[key].Run, maps.Clone(s.files[key].Names)}
	}
	clear(s.dirty)
	return all
}

func (s *store) drop(key runKey) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	known := s.files[key] != nil
	delete(s.files, key)
	delete(s.dirty, key)
	s.mu.Unlock()
	if known {
		_ = os.Remove(s.path(key))
	}
}

func (s *store) path(key runKey) string {
	sum := sha256.Sum256([]byte(key.workflowID + "\x00" + key.runID))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:12])+".json")
}
