package tasklog

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// StartFile has the [Start] of the process. It is for its user alone, whoever may read the
// logs.
const StartFile = "start.json"

// Start is how a process was started, as far as its run does not say: for those who compare
// it with another later.
type Start struct {
	// Version is that of the clusterrun that started it.
	Version string `json:"clusterrun"`
	Dir     string `json:"dir"`
	// Files are the program, and those of its arguments that name files.
	Files []File `json:"files,omitempty"`
	// Key names the [ValueKey] of the values of Inherited; empty: there are none.
	Key string `json:"key,omitempty"`
	// Inherited are the variables that the process has of the host worker, with a digest for
	// the value, and Set those that the run gave it. nil stands for a value that may be a
	// secret, and is kept nowhere.
	Inherited map[string]*string `json:"inherited"`
	Set       map[string]*string `json:"set"`
}

// File is a file as it was when a process was started.
type File struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

const (
	// mostFiles bounds those of a [Start].
	mostFiles = 8
	// longValue is how many bytes of a variable are kept as they are: of a longer one it
	// only matters whether it is the same.
	longValue = 1 << 10
	// maxStart is more than any StartFile has: a kernel takes no more variables than that.
	maxStart = 8 << 20
)

// FilesOf returns the program, and the arguments that name regular files, as they are now.
func FilesOf(program string, args []string, dir string) []File {
	var files []File
	for _, path := range append([]string{program}, args...) {
		if strings.HasPrefix(path, "-") || len(path) > unix.PathMax || len(files) == mostFiles {
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

// Variables sorts the environment of a process for a [Start]. Those in base with the same
// value are inherited, and nothing is kept of their values but what the key makes of them;
// hide reports whether a value must not be kept.
func (s *Start) Variables(env, base []string, key ValueKey, hide func(name, value string) bool) {
	own := make(map[string]string, len(base))
	for _, kv := range base {
		name, value, _ := strings.Cut(kv, "=")
		own[name] = value
	}
	s.Key = key.name()
	s.Inherited, s.Set = map[string]*string{}, map[string]*string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		to := s.Set
		inherited, ok := own[name]
		if ok = ok && inherited == value; ok {
			to = s.Inherited
		}
		switch {
		case hide(name, value) || spec.LooksSecret(name, value), ok && len(key) == 0:
			to[name] = nil
		case ok:
			to[name] = new(key.digest(name, value))
		case len(value) > longValue:
			to[name] = new(fmt.Sprintf("%d bytes, SHA-256 %x", len(value), sha256.Sum256([]byte(value))))
		default:
			to[name] = &value
		}
	}
}

// Write keeps it in the directory of the process, unless it is there already.
func (s *Start) Write(dir string) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, StartFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // of an attempt before this one to start the same process
	}
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}

// ReadStart returns how the process with that directory was started; nil: that is not known
// here.
func ReadStart(dir string) *Start {
	f, err := openToRead(filepath.Join(dir, StartFile))
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxStart))
	if err != nil {
		return nil
	}
	return ParseStart(b)
}

// ParseStart returns what a [StartFile] says; nil: nothing.
func ParseStart(b []byte) *Start {
	s := &Start{}
	if json.Unmarshal(b, s) != nil {
		return nil
	}
	if s.Key == "" { // of a clusterrun that kept the values themselves
		for name := range s.Inherited {
			s.Inherited[name] = nil
		}
	}
	return s
}
