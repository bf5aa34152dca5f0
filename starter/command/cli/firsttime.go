package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// FirstTime reports whether it is called for the first time with the given name. To remember this,
// it creates a file with that name in the state directory. If the directory cannot be created, it
// returns true.
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
