package cli

import (
	"io"

	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// NewApp returns the app of one command line.
func NewApp(args []string, in io.Reader, out, err io.Writer) *App {
	stdout, stderr := &errWriter{Writer: out}, &errWriter{Writer: err}
	return &App{Args: args, In: in, Out: stdout, Err: stderr, outlets: []*errWriter{stdout, stderr}}
}

// App is what all subcommands share.
type App struct {
	Args     []string
	In       io.Reader
	Out, Err io.Writer
	outlets  []*errWriter // those two
	Global   Globals
	Given    *pflag.FlagSet // of the subcommand
	Color    palette        // for stderr
	Printer  printer
	// temporary says where the state is, if that may not last; see keepTemporarily.
	temporary string
	NoStatus  bool     // no status line, although stderr may be a terminal
	printed   bool     // JSON was, on stdout
	Notes     []string // about words of other launchers
	// Elsewhere reads the error file of a failure from another host; nil: it is here.
	Elsewhere func(*spec.Failure) ([]byte, error)
	// hint asks the server that a command has connected to what was probably meant by the ID of
	// a run that it does not know; nil: the command has connected to none.
	hint  func(string) string
	Owned bool // the run is part of a program, whose user did not ask for one
}
