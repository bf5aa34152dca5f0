package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/clusterrun/clusterrun/activities/process/supervise"
)

// Binaries are built once per test run, or found in variables set by make.
var (
	clusterrunOnce = sync.OnceValues(func() (string, error) {
		return built("CLUSTERRUN_BIN", "clusterrun", ".", "./starter/clusterrun", "./starter/clusterrun-supervisor")
	})
	devserverOnce = sync.OnceValues(func() (string, error) {
		return built("CLUSTERRUN_DEVSERVER", "clusterrun-devserver", "deployments/devserver", "./clusterrun-devserver")
	})
)

// Clusterrun returns the clusterrun binary's path.
func Clusterrun(t testing.TB) string { return program(t, clusterrunOnce) }

// Supervisor returns the path of the supervisor, next to it.
func Supervisor(t testing.TB) string {
	return filepath.Join(filepath.Dir(Clusterrun(t)), supervise.ProgramName)
}

// Devserver returns the embedded server's path.
func Devserver(t testing.TB) string { return program(t, devserverOnce) }

// TemporalCLI returns the real temporal CLI's path. It skips the test if the program is missing,
// because building it takes minutes.
func TemporalCLI(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("CLUSTERRUN_TEMPORAL"); path != "" {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return tool(t, "temporal", "`make tools` builds it")
}

// tool returns the path to a program that only make builds. It skips the test if the program is
// missing.
func tool(t testing.TB, name, builtBy string) string {
	t.Helper()
	path := filepath.Join(Root(), ".tools", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not built: %s", path, builtBy)
	}
	return path
}

func program(t testing.TB, f func() (string, error)) string {
	t.Helper()
	path, err := f()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// built returns the path to the first package's program, built by make or else by built. Without
// make it always rebuilds, since a test of an old binary would be misleading.
func built(variable, name, module string, packages ...string) (string, error) {
	if p := os.Getenv(variable); p != "" {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	dir := filepath.Join(Root(), "bin")
	cmd := exec.Command("go", append([]string{"build", "-trimpath", "-o", dir + "/"}, packages...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Dir = filepath.Join(Root(), module)
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, b)
	}
	return filepath.Join(dir, name), nil
}

// Root is the project's root directory.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	for d := dir; d != "/"; d = filepath.Dir(d) {
		if b, err := os.ReadFile(filepath.Join(d, "go.mod")); err == nil && string(b[:len("module github.com/clusterrun/clusterrun\n")]) == "module github.com/clusterrun/clusterrun\n" {
			return d
		}
	}
	return dir
}
