package look

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/record"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Stacks are read from this machine or through the service of their host. Unreadable stacks are
// named, and the command fails.
func TestStacksOfAnotherHost(t *testing.T) {
	const name = "stacks-20260102T030405.678Z.txt"
	write := func(runDir, text string) string {
		dir := tasklog.ProcessDir(runDir, 0, 1)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return filepath.Join(dir, name)
	}
	// The path that another host names belongs to an unrelated file on this machine.
	logs, ours, theirs := t.TempDir(), t.TempDir(), t.TempDir()
	here, secret := write(logs, "main\n"), write(ours, "a file of ours\n")
	write(theirs, "its own\n")
	files, err := hostservice.Listen(hostservice.Config{Host: "served", StateDir: t.TempDir(), Listen: "127.0.0.1"})
	require.NoError(t, err)
	defer files.Close()
	go files.Serve(func(ctx context.Context, _ runkey.Run) { <-ctx.Done() }, nil)
	served := *files.Describe(runkey.Run{WorkflowID: "iris-1", RunID: "0199-aa"}, theirs, nil)
	read := &record.Files{
		Execution: "0199-aa", Own: "a", Logs: logs, Services: []spec.HostService{served},
		IsOwn: func(string) bool { return false },
	}

	for _, c := range []struct {
		host, file, text string
	}{
		{"a", here, "main\n"},
		{"shares", here, "main\n"}, // below the log directory of the run
		{"served", secret, "its own\n"},
		{"served", "/somewhere/else/" + name, ""},
		{"unserved", secret, ""},
		{"", secret, ""},
	} {
		captured := []stacksOfTask{{Task: "worker-1", Host: c.host, File: c.file}}
		for _, json := range []bool{false, true} {
			var out, errs bytes.Buffer
			a := &cli.App{Out: &out, Err: &errs}
			a.Global.JSON = json
			err := printStacks(t.Context(), a, "iris-1", nil, captured, nil, true, read)
			assert.NotContains(t, out.String(), "a file of ours")
			if c.text != "" {
				assert.NoError(t, err)
				require.NotNil(t, captured[0].Text)
				assert.Equal(t, c.text, *captured[0].Text)
			} else {
				assert.Equal(t, exitcode.Machinery, cli.CodeOf(err))
				assert.Equal(t, "clusterrun: what cannot be read from here is left out:\n  worker-1: "+c.file+" on "+cli.OrDash(c.host)+"\n", errs.String())
			}
			assert.NoError(t, printStacks(t.Context(), a, "iris-1", nil, captured, nil, false, read))
		}
	}
}
