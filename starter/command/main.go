package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/undumpable"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Main runs the command line of this process and returns its exit code.
func Main() int {
	// Before there is a key in its memory.
	if err := undumpable.Set(); err != nil {
		fmt.Fprintf(os.Stderr, "clusterrun: closing this process to others of its user: %v\n", err)
		return exitcode.Machinery
	}
	deferGC()
	args := os.Args[1:]
	if _, replaces := supervisor.Replaces(); replaces {
		args = workers.TakeOverArgs[:1]
	}
	return run(args, os.Stdin, os.Stdout, os.Stderr)
}

const (
	startPercent = 400
	startTime    = 10 * time.Second
)

// deferGC has the garbage collector leave a start alone, in which much is allocated that
// stays, on a heap that is still tiny. What goes on for longer is collected as usual.
func deferGC() {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := debug.SetGCPercent(startPercent)
	time.AfterFunc(startTime, func() { debug.SetGCPercent(percent) })
}

// run runs the command line with the given streams and returns its exit code.
func run(args []string, in io.Reader, out, err io.Writer) int {
	a := newApp(args, in, out, err)
	root := rootFor(a, args)
	root.SetIn(in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	args, problem := translate(a, root, args)
	if problem == nil {
		root.SetArgs(passTorchrun(root, args))
		problem = root.ExecuteContext(context.Background())
	}
	return a.lost(a.exit(problem))
}

// Commands returns the root of all commands, for what describes them. They write to out.
func Commands(out io.Writer) *cobra.Command {
	return root(newApp(nil, nil, out, out))
}

// newApp returns the app of one command line.
func newApp(args []string, in io.Reader, out, err io.Writer) *app {
	stdout, stderr := &outlet{Writer: out}, &outlet{Writer: err}
	return &app{args: args, in: in, out: stdout, err: stderr, outlets: []*outlet{stdout, stderr}}
}

// app is what all subcommands share.
type app struct {
	args     []string
	in       io.Reader
	out, err io.Writer
	outlets  []*outlet // those two
	global   globals
	given    *pflag.FlagSet // of the subcommand
	color    palette        // for stderr
	voice    voice
	// temporary says where the state is, if that may not last; see keepTemporarily.
	temporary string
	noStatus  bool     // no status line, although stderr may be a terminal
	printed   bool     // JSON was, on stdout
	notes     []string // about words of other launchers
	// elsewhere reads the error file of a failure from another host; nil: it is here.
	elsewhere func(*spec.ProcessFailure) ([]byte, error)
	// hint asks the server that a command has connected to what was probably meant by the ID of
	// a run that it does not know; nil: the command has connected to none.
	hint  func(string) string
	owned bool // the run is part of a program, whose user did not ask for one
}
