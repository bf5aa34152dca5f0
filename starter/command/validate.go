package command

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

func Validate(a *app) *cobra.Command {
	f := &specFlags{}
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
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := parseSource(cmd, args)
			if err != nil {
				return err
			}
			if src.file == "" && len(src.others) == 0 && cmd.ArgsLenAtDash() != 0 {
				// For run this is a program; whoever validates it meant a file.
				return usagef("%s is no spec: the name of one ends in .yaml, .yml or .json; to check a command, write it after --", args[0])
			}
			s, err := src.read(a.in, f)
			sayNotes(a, src, f)
			if a.global.json {
				return validateJSON(a, s, err)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "ok: %s\n", plural.Of(len(s.TaskList()), "task", "tasks"))
			return nil
		},
	}
	cmd.Flags().SetInterspersed(false)
	f.register(cmd.Flags())
	return cmd
}

// validateJSON prints the complete spec, or the problems.
func validateJSON(a *app, s *spec.RunSpec, err error) error {
	var usage *usageError
	switch {
	case err == nil:
		return a.printJSON(map[string]any{"ok": true, "spec": s.WithDefaults()})
	case errors.As(err, &usage):
		if err := a.printJSON(map[string]any{"ok": false, "problems": usage.problems}); err != nil {
			return err
		}
		return &exitError{code: exitcode.Usage}
	}
	return err
}

// printJSON prints one document to stdout.
func (a *app) printJSON(v any) error { return a.encode(v, "  ") }

// printJSONLine prints one of several documents to stdout, in a line of its own.
func (a *app) printJSONLine(v any) error { return a.encode(v, "") }

func (a *app) encode(v any, indent string) error {
	a.printed = true
	e := json.NewEncoder(a.out)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}
