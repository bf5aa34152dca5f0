package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/worker"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// Main runs the command line of this process and returns its exit code.
func Main() int {
	// Call this before there is any key in the process's memory.
	if err := proc.SetUndumpable(); err != nil {
		fmt.Fprintf(os.Stderr, "clusterrun: closing this process to others of its user: %v\n", err)
		return exitcode.Machinery
	}
	if err := fault.RoomForMain(); err != nil {
		fmt.Fprintf(os.Stderr, "clusterrun: %v\n", err)
		return exitcode.Machinery
	}
	deferGC()
	return execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

const (
	startPercent = 400
	startTime    = 10 * time.Second
)

// deferGC makes garbage collections rare during startup, when the heap is tiny and most allocations
// survive. After [startTime], they are as frequent as usual.
func deferGC() {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := debug.SetGCPercent(startPercent)
	time.AfterFunc(startTime, func() { debug.SetGCPercent(percent) })
}

// execute runs the command line with the given streams and returns its exit code.
func execute(args []string, in io.Reader, out, err io.Writer) int {
	a := cli.NewApp(args, in, out, err)
	a.Revive = worker.Revive
	root := rootFor(a, args)
	root.SetIn(in)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetArgs(forPOSIX(root, args))
	return a.Lost(a.Exit(cli.Exclusive(root.ExecuteContext(context.Background()))))
}

// forPOSIX changes non-POSIX arguments: it puts -- before torchrun's, and writes mpirun's -np as
// --np.
func forPOSIX(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil {
		return args // cobra reports what is wrong
	}
	at := afterName(root, cmd, args)
	if cmd.Name() == "torchrun" {
		return slices.Concat(args[:at], []string{"--"}, args[at:])
	}
	if cmd.Flags().Lookup("np") == nil {
		return args
	}
	args = slices.Clone(args)
	for ; at < len(args) && strings.HasPrefix(args[at], "-") && args[at] != "--"; at++ {
		if args[at] == "-np" {
			args[at] = "--np"
		}
		if cli.TakesValue(cmd, args[at]) {
			at++
		}
	}
	return args
}

// afterName returns the index of a command's first argument.
func afterName(root, cmd *cobra.Command, args []string) int {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == cmd.Name():
			return i + 1
		case strings.HasPrefix(args[i], "-") && cli.TakesValue(root, args[i]):
			i++
		}
	}
	return len(args)
}
