package tasklog

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// StartFile contains the process's [Start]. Only the process's user may read it even if other users
// may read the logs.
const StartFile = "start.json"

// Start records details of a process's start that its run's spec does not contain, for a later
// comparison with another process.
type Start struct {
	// Version is the clusterrun version that started it.
	Version string `json:"clusterrun"`
	Dir     string `json:"dir"`
	// Files lists the program and the files named by its arguments.
	Files []File `json:"files,omitempty"`
	// Inherited contains the names of the variables that the process inherited from the host
	// worker, sorted, and Set the variables that the run set. nil represents a value that may be
	// secret, and is not stored.
	Inherited []string           `json:"inherited"`
	Set       map[string]*string `json:"set"`
}

// File is a file's state when a process was started.
type File struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

const (
	// maxFiles limits the files of a [Start].
	maxFiles = 8
	// longValue is the maximum length of a stored variable value. Longer values are only compared
	// for equality.
	longValue = 1 << 10
	// maxStart is more than any StartFile's size, because the kernel limits the environment.
	maxStart = 8 << 20
)

// FilesOf returns the current state of the program and of the arguments that name regular files.
func FilesOf(program string, args []string, dir string) []File {
	var files []File
	for _, path := range append([]string{program}, args...) {
		if strings.HasPrefix(path, "-") || len(path) > unix.PathMax || len(files) == maxFiles {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, File{Path: path, Size: info.Size(), Modified: info.ModTime().UTC()})
		}
	}
	return files
}

// Variables stores a process's environment in a [Start]. Variables with the same value as in base
// are inherited, and their values are not stored. hide reports whether any other value must not be
// stored.
func (s *Start) Variables(env, base []string, hide func(value string) bool) {
	s.Inherited, s.Set = []string{}, map[string]*string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case slices.Contains(base, kv):
			s.Inherited = append(s.Inherited, name)
		case hide(value) || spec.LooksSecret(name, value):
			s.Set[name] = nil
		case len(value) > longValue:
			s.Set[name] = new(fmt.Sprintf("%d bytes, SHA-256 %x", len(value), sha256.Sum256([]byte(value))))
		default:
			s.Set[name] = &value
		}
	}
	slices.Sort(s.Inherited)
}

// Write writes s to the process's directory, unless it already contains one.
func (s *Start) Write(dir string) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, StartFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // from an earlier attempt to start the same process
	}
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}

// ReadStart returns how the process with the given directory was started, or nil if that is unknown
// on this host.
func ReadStart(dir string) *Start {
	b, _, err := ReadFile(filepath.Join(dir, StartFile), maxStart)
	if err != nil {
		return nil
	}
	return ParseStart(b)
}

// ParseStart parses the content of a [StartFile]. It returns nil for invalid content.
func ParseStart(b []byte) *Start {
	s := &Start{}
	if json.Unmarshal(b, s) != nil {
		return nil
	}
	return s
}
