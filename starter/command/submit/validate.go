package submit

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

func Validate(a *cli.App) *cobra.Command {
	var f specs.SpecFlags
	cmd := &cobra.Command{
		Use:   "validate [flags] SPEC [-- COMMAND [ARG...]]",
		Short: "Check a run spec, and report every mistake at once",
		Long: `Checks a run spec, overridden by the flags of run, and reports every mistake at once. SPEC
is a file in YAML or JSON, a TensorFlow cluster spec, or - for stdin. With --json it prints
the spec as it would run, with defaults filled in, or the mistakes.

Exit codes:
  0  the spec is valid
  2  it is not; every mistake is on stderr`,
		Example: `  clusterrun validate iris.yaml
  clusterrun validate --json --auto-restart iris.yaml
  echo '{"worker": ["localhost:2222"]}' | clusterrun validate - -- ./train`,
		RunE: func(cmd *cobra.Command, args []string) error { return runValidate(a, cmd, args, &f) },
	}
	cmd.Flags().SetInterspersed(false)
	f.Register(cmd.Flags())
	return cmd
}

// runValidate implements [Validate].
func runValidate(a *cli.App, cmd *cobra.Command, args []string, f *specs.SpecFlags) error {
	src, err := specs.ParseSource(cmd, args)
	if err != nil {
		return err
	}
	if src.File == "" && len(src.Others) == 0 && cmd.ArgsLenAtDash() != 0 {
		// run takes this for a program, but a user of validate meant a file.
		return cli.Usagef("%s is no spec: the name of one ends in .yaml, .yml or .json; to check a command, write it after --", args[0])
	}
	s, err := src.Read(a.In, f)
	specs.SayNotes(a, src, f)
	if a.Global.JSON {
		return validateJSON(a, s, err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "ok: %s\n", plural.Of(len(s.TaskList()), "task", "tasks"))
	return nil
}

// validateJSON prints the complete spec, or the problems.
func validateJSON(a *cli.App, s *spec.RunSpec, err error) error {
	var usage *cli.UsageError
	switch {
	case err == nil:
		return a.PrintJSON(map[string]any{"ok": true, "spec": s.WithDefaults()})
	case errors.As(err, &usage):
		if err := a.PrintJSON(map[string]any{"ok": false, "problems": usage.Problems}); err != nil {
			return err
		}
		return &cli.ExitError{Code: exitcode.Usage}
	}
	return err
}
