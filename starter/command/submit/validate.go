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
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

func Validate(a *cli.App) *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:   "validate [flags] SPEC [-- COMMAND [ARG...]]",
		Short: "Check a run spec, or show where it would run",
		Long: `Checks a run spec, overridden by the flags of run, and reports every mistake at once. SPEC
is a file in YAML or JSON, a TensorFlow cluster spec, or - for stdin. With --json it prints
the spec as it would run, with defaults filled in, or the mistakes.

With --plan it shows on which hosts of the queue the tasks would be placed now, or what the
run would wait for, and what it would ship. SPEC and flags are those of submit. Nothing is
started, sent or stored. With --schema it prints the JSON Schema of a run spec, for editors
and other programs, and takes no SPEC.

Exit codes:
  0    the spec is valid; with --plan: there is room for it now
  1    with --plan: there is no room now; stderr says what is missing
  2    it is not valid; every mistake is on stderr
  125  with --plan: the server could not be reached, or the queue has no hosts`,
		Example: `  clusterrun validate iris.yaml
  clusterrun validate --json --auto-restart iris.yaml
  echo '{"worker": ["localhost:2222"]}' | clusterrun validate - -- ./train
  clusterrun validate --plan -n 16 -- python3 train.py
  clusterrun validate --plan --ship . iris.yaml

  clusterrun validate --schema > clusterrun.schema.json
  # then, as the first line of a spec, for editors with a YAML language server:
  # yaml-language-server: $schema=clusterrun.schema.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return runValidate(cmd.Context(), a, cmd, args, &o) },
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().BoolVar(&o.plan, "plan", false, "show where the run would be placed now, or what it would wait for")
	cmd.Flags().StringVar(&o.queue, "queue", spec.TaskQueue, "with --plan: task `QUEUE` of the hosts")
	cmd.Flags().BoolVar(&o.schema, "schema", false, "print the JSON Schema of a run spec instead")
	o.f.Register(cmd.Flags())
	return cmd
}

// validateOptions are the flags of [Validate].
type validateOptions struct {
	f            specs.SpecFlags
	plan, schema bool
	queue        string
}

// runValidate implements [Validate].
func runValidate(ctx context.Context, a *cli.App, cmd *cobra.Command, args []string, o *validateOptions) error {
	switch {
	case o.schema && o.plan:
		return cli.Usagef("--schema and --plan exclude each other; give one of them")
	case o.schema && len(args) > 0:
		return cli.Usagef("unexpected argument %q: --schema prints the schema of all specs; leave one of them out", args[0])
	case o.schema:
		return a.PrintRaw(spec.Schema())
	case o.plan:
		return plan(ctx, a, cmd, args, o)
	case cmd.Flags().Changed("queue"):
		return cli.Usagef("--queue is for --plan: a spec is valid on any queue")
	}
	return validate(a, cmd, args, &o.f)
}

// validate checks a spec.
func validate(a *cli.App, cmd *cobra.Command, args []string, f *specs.SpecFlags) error {
	src, err := specs.ParseSource(cmd, args)
	if err != nil {
		return err
	}
	if src.File == "" && len(src.Others) == 0 && cmd.ArgsLenAtDash() != 0 {
		// run treats this as a program, but a user of validate means a file.
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
