package command

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
)

// TestMain makes the test binary run as clusterrun if a script calls it by that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"clusterrun": func() { os.Exit(Main()) }})
}

// TestScripts runs commands that need no server as a user would. Scripts that need one are in
// tests/e2e.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			// Scripts get a state directory of their own, and none of the developer's
			// variables.
			ours, _, _ := strings.Cut(e.Getenv("PATH"), ":")
			e.Vars = append(e.Vars, "HOME="+e.WorkDir, "CLUSTERRUN_STATE_DIR="+e.WorkDir+"/state", "CLUSTERRUN_DEVSERVER=",
				"PATH="+ours+":/usr/bin:/bin", "LOGS_HOST="+retention.Host())
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits runs a command and checks its exit code: exits 2 clusterrun run.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = err.Error()[len("exit status "):]
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}
