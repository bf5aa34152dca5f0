package specs

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/launchers/torchrun"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// sayPET warns that torchrun's variables are ignored. It does so only if the command was typed by a
// user.
func sayPET(a *cli.App, src Source) {
	names := torchrun.Variables(os.Environ())
	if len(src.Command) == 0 || len(names) == 0 {
		return
	}
	verb := "is set, but is"
	if len(names) > 1 {
		verb = "are set, but are"
	}
	a.Say("%s", fmt.Sprintf("%s %s only read by `clusterrun torchrun`", strings.Join(names, ", "), verb))
}

// Read reads the spec that a command line names.
func Read(a *cli.App, cmd *cobra.Command, args []string, f *SpecFlags) (*spec.RunSpec, error) {
	src, err := ParseSource(cmd, args)
	if err != nil {
		return nil, err
	}
	return ReadSource(a, src, f)
}

// ReadSource reads a source's spec, overridden by the flags.
func ReadSource(a *cli.App, src Source, f *SpecFlags) (*spec.RunSpec, error) {
	s, err := src.Read(a.In, f)
	if err != nil {
		return nil, err
	}
	f.SayWarnings(a)
	saySecrets(a, s)
	sayPET(a, src)
	return s, ApplyMPI(a, s, f)
}

// SayWarnings prints the warnings about a command line.
func (f *SpecFlags) SayWarnings(a *cli.App) {
	for _, text := range f.Warnings {
		a.Say("%s", text)
	}
}
