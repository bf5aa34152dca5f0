package command

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/process/supervise"
)

// TestMain makes the test binary act as clusterrun if a script calls it by that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"clusterrun":          func() { os.Exit(Main()) },
		supervise.ProgramName: func() { os.Exit(supervise.Main(os.Args[1:])) },
	})
}

// TestScripts runs commands that work without a server, like a user. Scripts that need a server
// are in tests/e2e.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Abs("testdata/script") // commands change this process's directory
	require.NoError(t, err)
	ours, _, _ := strings.Cut(os.Getenv("PATH"), ":") // commands change the environment as well
	testscript.Run(t, testscript.Params{
		Dir:                 scripts,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			// Scripts get their own state directory, and none of the developer's variables.
			e.Vars = append(e.Vars, "HOME="+e.WorkDir, "CLUSTERRUN_STATE_DIR="+e.WorkDir+"/state", "CLUSTERRUN_DEVSERVER=",
				"PATH="+ours+":/usr/bin:/bin", "LOGS_HOST="+retention.Host())
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "prints": prints},
	})
}

// exits runs a command and checks its exit code: exits 125 clusterrun list. A refused command
// line starts nothing, so it does not need a separate process.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	var code string
	if args[0] == "2" && args[1] == "clusterrun" {
		code = strconv.Itoa(executeHere(ts, args[2:]))
	} else if err := ts.Exec(args[1], args[2:]...); err != nil {
		code = err.Error()[len("exit status "):]
	} else {
		code = "0"
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}

// prints runs a command that only prints, such as prints clusterrun help run.
func prints(ts *testscript.TestScript, _ bool, args []string) {
	if code := executeHere(ts, args[1:]); code != 0 {
		ts.Fatalf("exit code %d", code)
	}
}

// process guards this process's environment and directory.
var process sync.Mutex

// executeHere runs the command line within this process, a hundred times faster than in another
// process, with the script's environment and directory. It returns the exit code.
func executeHere(ts *testscript.TestScript, args []string) int {
	list := filepath.Join(ts.Getenv("TMPDIR"), "environment")
	ts.Check(ts.Exec("/bin/sh", "-c", "/usr/bin/env -0 > "+list))
	process.Lock()
	defer process.Unlock()
	dir, err := os.Getwd()
	ts.Check(err)
	defer setProcess(ts, dir, os.Environ())
	setProcess(ts, ts.MkAbs("."), strings.Split(ts.ReadFile(list), "\x00"))
	return execute(args, strings.NewReader(""), ts.Stdout(), ts.Stderr())
}

func setProcess(ts *testscript.TestScript, dir string, environ []string) {
	ts.Check(os.Chdir(dir))
	os.Clearenv()
	for _, variable := range environ {
		if key, value, ok := strings.Cut(variable, "="); ok {
			ts.Check(os.Setenv(key, value))
		}
	}
}
