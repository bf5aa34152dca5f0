package submit

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

func Validate(a *cli.App) *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:   "validate [flags] SPEC [-- COMMAND [ARG...]]",
		Short: "Check a run spec, or show where it would run",
		RunE:  func(cmd *cobra.Command, args []string) error { return runValidate(cmd.Context(), a, cmd, args, &o) },
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().BoolVar(&o.plan, "plan", false, "show where the run would be placed now, or what it would wait for")
	cmd.Flags().StringVar(&o.queue, "queue", spec.TaskQueue, "with --plan: task `QUEUE` of the hosts")
	cmd.Flags().BoolVar(&o.schema, "schema", false, "print the JSON Schema of a run spec instead")
	cmd.MarkFlagsMutuallyExclusive("schema", "plan")
	o.f.Register(cmd.Flags())
	return cmd
}

// validateOptions holds the flags of [Validate].
type validateOptions struct {
	f            specs.SpecFlags
	plan, schema bool
	queue        string
}

// runValidate implements [Validate].
func runValidate(ctx context.Context, a *cli.App, cmd *cobra.Command, args []string, o *validateOptions) error {
	switch {
	case o.schema && len(args) > 0:
		return cli.Usagef("unexpected argument %q: --schema prints the schema of all specs; omit one of them", args[0])
	case o.schema:
		return a.PrintRaw(spec.Schema())
	case o.plan:
		return plan(ctx, a, cmd, args, o)
	case cmd.Flags().Changed("queue"):
		return cli.Usagef("--queue requires --plan: a spec is valid on any queue")
	}
	return validate(a, cmd, args, &o.f)
}

// validate checks a spec.
func validate(a *cli.App, cmd *cobra.Command, args []string, f *specs.SpecFlags) error {
	src, err := specs.ParseSource(cmd, args)
	if err != nil {
		return err
	}
	if src.File == "" && cmd.ArgsLenAtDash() != 0 {
		// run treats this as a program, but validate's user means a file.
		return cli.Usagef("%s is not a spec: spec files end in .yaml, .yml or .json; to check a command, write it after --", args[0])
	}
	s, err := src.Read(a.In, f)
	f.SayWarnings(a)
	if a.Global.JSON {
		return validateJSON(a, s, err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "ok: %s\n", units.Count(len(s.TaskList()), "task", "tasks"))
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
