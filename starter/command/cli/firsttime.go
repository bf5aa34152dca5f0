package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// FirstTime reports whether this is the first call with that name. It creates a file with that
// name in the state directory, and returns true if the directory cannot be created.
func (a *App) FirstTime(name string) bool {
	if os.MkdirAll(a.Global.StateDir, 0o700) != nil {
		return true
	}
	f, err := os.OpenFile(filepath.Join(a.Global.StateDir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_ = f.Close()
	}
	return !errors.Is(err, fs.ErrExist)
}
