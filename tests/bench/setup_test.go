package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/harness"
)

// TestMain also makes this program the programs that are measured.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "program" {
		if err := Program(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// startServer starts the server selected by CLUSTERRUN_BENCH_SERVER: "postgresql" is Temporal's
// own with that database. The default is the embedded server.
func startServer(b *testing.B) *harness.Server {
	b.Helper()
	switch name := os.Getenv("CLUSTERRUN_BENCH_SERVER"); name {
	case "", "embedded":
		return harness.StartServer(b, "--headless")
	case "postgresql":
		return harness.StartTemporal(b)
	default:
		b.Fatalf("CLUSTERRUN_BENCH_SERVER=%s: it is neither embedded nor postgresql", name)
		return nil
	}
}

// stopOwnServer stops the server that runs in this home started, by its pid.
func stopOwnServer(b *testing.B, home string) {
	b.Helper()
	files, _ := filepath.Glob(filepath.Join(home, ".local/state/clusterrun/server/ready*.json"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(b, err)
		var ready struct{ PID int }
		require.NoError(b, json.Unmarshal(text, &ready))
		_ = syscall.Kill(ready.PID, syscall.SIGTERM)
		harness.Eventually(b, "the own server has ended", func() bool { return harness.State(ready.PID) == "" || harness.State(ready.PID) == "Z" })
	}
}

// timed returns how long a command takes.
func timed(b *testing.B, home string, argv ...string) time.Duration {
	b.Helper()
	took, err := (&Place{Dir: home, Env: harness.Env(home)}).Time(b.Context(), argv)
	require.NoError(b, err)
	return took
}

func residentMiB(b *testing.B, pids ...int) float64 {
	b.Helper()
	size, err := Resident(pids)
	require.NoError(b, err)
	return float64(size) / (1 << 20)
}

// cpu returns a process's CPU time.
func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := proc.ReadStat(pid)
	require.NoError(b, err)
	return stat.User + stat.System
}
