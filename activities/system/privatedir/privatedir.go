// Package privatedir creates directories that only this process's user may read, even within
// directories to which other users may write, such as /tmp. It also determines where all sockets
// are.
package privatedir

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// MaxSocketPath is the maximum length of a socket's path on Linux (sun_path has 108 bytes, the last
// of them zero).
const MaxSocketPath = 107

// Make creates a directory that only this process's user may read and write. An existing directory
// must belong to this user, because another owner could replace the files in it.
func Make(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		info, err = os.Lstat(dir)
	}
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory; remove it", dir)
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user; remove it, or choose a shorter state directory", dir)
	}
	const passable = 0o711 // other users may open files in it if they know their names
	if perm := info.Mode().Perm(); perm == 0o700 || perm == passable {
		return nil
	}
	return os.Chmod(dir, 0o700)
}

// Temp returns the paths of this user's directory for temporary files, the best first. Make creates
// it. It is not in XDG_RUNTIME_DIR, which is removed when the user logs out, because background
// processes outlive the login.
func Temp() []string {
	name := "clusterrun-" + strconv.Itoa(os.Geteuid())
	return slices.Compact([]string{filepath.Join(os.TempDir(), name), filepath.Join("/tmp", name)})
}

// Sockets creates the directory with the given name for a state directory's sockets, which only one
// process may use at a time. The sockets' paths within it have at most longest bytes, including the
// slash. The directory is in the state directory or, if paths there would be too long for a socket,
// in the first suitable private directory from [Temp], /var/tmp and /dev/shm.
func Sockets(stateDir, name string, longest int) (string, error) {
	own := filepath.Base(Temp()[0])
	return socketsIn(stateDir, name, longest, append(Temp(), filepath.Join("/var/tmp", own), filepath.Join("/dev/shm", own)))
}

func socketsIn(stateDir, name string, longest int, temp []string) (string, error) {
	own := filepath.Join(stateDir, name)
	if len(own)+longest <= MaxSocketPath {
		return own, wrap(Make(own))
	}
	var failed error
	for _, parent := range temp {
		dir := filepath.Join(parent, Short(stateDir, name))
		if !filepath.IsAbs(parent) || len(dir)+longest > MaxSocketPath {
			continue
		}
		// The parent of this directory may be writable by other users.
		err := Make(parent)
		if err == nil {
			return dir, wrap(Make(dir))
		}
		failed = cmp.Or(failed, err)
	}
	if failed != nil {
		return "", wrap(failed)
	}
	return "", fmt.Errorf("the paths of sockets would be too long (Linux allows %d bytes): choose a shorter state directory than %s, or a shorter TMPDIR", MaxSocketPath, stateDir)
}

func wrap(err error) error {
	if err != nil {
		return fmt.Errorf("directory for sockets: %w", err)
	}
	return nil
}

// Short returns a name of 10 letters and digits for the given strings. Different strings have
// different names.
func Short(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:10]
}
