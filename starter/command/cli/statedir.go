package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/privatedir"
)

// defaultStateDir returns this user's state directory: from the environment, or else in the home
// directory. With cron and in containers HOME may be unset; then the password file names the home
// directory. It returns "" if there is no usable home directory, and an error, besides the
// directory, if the environment names an unusable one.
func defaultStateDir() (string, error) {
	if dir := os.Getenv("CLUSTERRUN_STATE_DIR"); dir != "" {
		return dir, nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) && writable(dir) {
		return filepath.Join(dir, "clusterrun"), nil
	}
	if home := os.Getenv("HOME"); home != "" {
		if dir := stateIn(home); dir != "" {
			return dir, nil
		}
		return filepath.Join(home, ".local", "state", "clusterrun"),
			Usagef("HOME is %s, which is not a directory in which this user can keep state; correct it, or name a state directory with CLUSTERRUN_STATE_DIR or --state-dir", home)
	}
	return stateIn(hostuser.Home(context.Background())), nil
}

// stateIn returns the state directory for a home directory, or "" if the home is unusable.
func stateIn(home string) string {
	dir := filepath.Join(home, ".local", "state", "clusterrun")
	if !filepath.IsAbs(home) || !IsDir(home) || !writable(dir) {
		return ""
	}
	return dir
}

// writable reports whether a directory, or its nearest existing parent, is writable.
func writable(dir string) bool {
	for {
		err := unix.Access(dir, unix.W_OK|unix.X_OK)
		if parent := filepath.Dir(dir); err == unix.ENOENT && parent != dir {
			dir = parent
			continue
		}
		return err == nil && IsDir(dir)
	}
}

// keepTemporarily places the state directory among temporary files. This is a last resort, because
// temporary files may be removed.
func keepTemporarily(a *App) error {
	parent := privatedir.Temp()[0]
	if err := privatedir.Make(parent); err != nil {
		return Usagef("there is no home directory for state, and no directory for temporary files (%s); name a directory with --state-dir", err)
	}
	a.Global.StateDir = filepath.Join(parent, "state")
	a.temporary = fmt.Sprintf("there is no home directory for state and logs, so they are in %s and may not last; choose another directory with --state-dir or CLUSTERRUN_STATE_DIR", a.Global.StateDir)
	return nil
}

// If the state directory is among temporary files, sayTemporary prints its location, once.
func (a *App) sayTemporary() {
	if a.temporary != "" {
		a.Say("%s", a.temporary)
		a.temporary = ""
	}
}

func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
