package cli

import (
	"context"
	"io"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// NewApp returns the app for one command line.
func NewApp(args []string, in io.Reader, out, err io.Writer) *App {
	stdout, stderr := &errWriter{Writer: out}, &errWriter{Writer: err}
	return &App{Args: args, In: in, Out: stdout, Err: stderr, outlets: []*errWriter{stdout, stderr}}
}

// App holds the state that all subcommands share.
type App struct {
	Args     []string
	In       io.Reader
	Out, Err io.Writer
	outlets  []*errWriter // Out and Err
	Global   Globals
	Given    *pflag.FlagSet // the subcommand's flags
	Color    palette        // for stderr
	Printer  printer
	// temporary is a message that names the state directory if it may not last; see
	// keepTemporarily.
	temporary string
	embedded  bool  // whether the command uses the embedded server
	noHome    error // why the state directory, which depends on HOME, is unusable
	NoStatus  bool  // whether to omit the status line even on a terminal
	printed   bool  // whether JSON was printed on stdout
	// Elsewhere reads the error file of a failure from another host. It is nil if the file is
	// on this host.
	Elsewhere func(*spec.Failure) ([]byte, error)
	// hint asks the server for a run ID that is similar to an unknown one. It is nil if the command
	// has not connected to a server.
	hint  func(string) string
	Owned bool // whether the run belongs to a program whose user did not request a run

	// Revive starts the embedded server's host worker again if it was killed.
	Revive func(context.Context, *App, client.Client, Target)
}
