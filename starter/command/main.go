package command

import (
	"context"
	"io"
	"os"
)

// Main runs the command line of this process and returns its exit code.
func Main() int {
	return run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// run is the command line with everything injected.
func run(args []string, in io.Reader, out, err io.Writer) int {
	a := &app{in: in, out: out, err: err}
	root := a.root()
	root.SetArgs(expandNP(root, args))
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(err)
	return a.exit(root.ExecuteContext(context.Background()))
}

// app is what all subcommands share.
type app struct {
	in       io.Reader
	out, err io.Writer
	global   globals
	color    palette // for stderr
	voice    voice
	noStatus bool // no status line, although stderr may be a terminal
	owned    bool // the run is part of a program, whose user did not ask for one
}
