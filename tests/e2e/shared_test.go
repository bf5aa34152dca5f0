package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workers/embedded"
)

// binary stands for this test binary as a test. Whatever belongs to it is used by many tests, and is
// removed after all of them.
type binary struct {
	testing.TB
	mu       sync.Mutex
	cleanups []func()
}

var all binary

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(all.cleanups) - 1; i >= 0; i-- {
		all.cleanups[i]()
	}
	os.Exit(code)
}

func (b *binary) Helper()                  {}
func (b *binary) Context() context.Context { return context.Background() }
func (b *binary) Failed() bool             { return false }
func (b *binary) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
func (b *binary) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (b *binary) FailNow()                          { panic("what many tests use failed") }

func (b *binary) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

func (b *binary) TempDir() string {
	dir, err := os.MkdirTemp("", "e2e-")
	require.NoError(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

var sharedServer = sync.OnceValues(func() (*harness.Server, *harness.Worker) {
	s := harness.StartServer(&all, "--headless")
	return s, s.StartWorker(&all)
})

// onSharedServer returns the fixture for tests that kill neither the server nor the host worker, and
// look only at their own runs.
func onSharedServer(t *testing.T) *fixture {
	t.Helper()
	s, w := sharedServer()
	return prepare(t, s, w)
}

// sharedState is a state directory, with an embedded server after the first run.
var sharedState = sync.OnceValue(func() string {
	dir := all.TempDir()
	all.Cleanup(func() {
		s, _ := embedded.Home{Dir: filepath.Join(dir, "server")}.Find(context.Background())
		if s == nil {
			return
		}
		_ = syscall.Kill(s.PID, syscall.SIGTERM)
		harness.Eventually(&all, "the embedded server has ended", func() bool { return strings.Trim(harness.State(s.PID), "Z") == "" })
	})
	return dir
})

// withSharedServer returns a home for tests like those of onSharedServer. Its embedded server is the
// same for all of them.
func withSharedServer(t *testing.T) *local {
	t.Helper()
	l := newHome(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(l.state()), 0o700))
	require.NoError(t, os.Symlink(sharedState(), l.state()))
	return l
}
