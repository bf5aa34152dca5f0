package embedded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/remedy"
)

// ProgramName is the server's executable name. It is a separate program because it is many times
// the size of clusterrun, which is copied to every host.
const ProgramName = "clusterrun-devserver"

// ProgramVariable is the environment variable with the server's executable path.
const ProgramVariable = "CLUSTERRUN_DEVSERVER"

// MissingError is returned if the server's executable is not installed.
type MissingError struct{ Looked string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("the embedded Temporal server is not installed: no %s in %s, nor in $PATH, and %s is not set", ProgramName, e.Looked, ProgramVariable)
}

// program finds the server's executable: the path in the variable, a file next to our own
// executable, or a program on the PATH.
func (h Home) program() (string, error) {
	if h.Program != "" {
		return h.Program, nil
	}
	if path := os.Getenv(ProgramVariable); path != "" {
		if err := executable(path); err != nil {
			return "", fmt.Errorf("%s names %s: %w", ProgramVariable, path, err)
		}
		return filepath.Abs(path)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program clusterrun: %w", err)
	}
	beside := filepath.Dir(self)
	if path := filepath.Join(beside, ProgramName); executable(path) == nil {
		return path, nil
	}
	if path, err := exec.LookPath(ProgramName); err == nil {
		return filepath.Abs(path)
	}
	return "", remedy.With(&MissingError{Looked: beside}, "build it with `make build`, or name a Temporal server with --address or TEMPORAL_ADDRESS")
}

// Version returns the version line of the server's program.
func (h Home) Version(ctx context.Context) (string, error) {
	path, err := h.program()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env, cmd.WaitDelay = environment(), time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	return strings.TrimSpace(string(out)), nil
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("it is not an executable file")
	}
	return nil
}
