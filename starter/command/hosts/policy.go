package hosts

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

func Policy(a *cli.App) *cobra.Command {
	var o policyOptions
	cmd := &cobra.Command{
		Use:   "policy [flags] FILE",
		Short: "Check which programs a host would run, for whom and as which user",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.schema {
				return cli.NoArgs(cmd, args)
			}
			return cli.OneArg("FILE")(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error { return runPolicy(a, args, &o) },
	}
	cmd.Flags().StringVar(&o.specFile, "spec", "", "show what it decides about the tasks and the webhook of the run spec in this `FILE`")
	cmd.Flags().StringSliceVar(&o.signers, "signer", nil, "with --spec: `NAME` of the principal who signed it (default: unsigned)")
	cmd.Flags().BoolVar(&o.schema, "schema", false, "print the JSON Schema of a policy instead")
	cmd.MarkFlagsMutuallyExclusive("schema", "spec")
	cmd.MarkFlagsMutuallyExclusive("schema", "signer")
	return cmd
}

// policyOptions holds the flags of [Policy].
type policyOptions struct {
	specFile string
	signers  []string
	schema   bool
}

// runPolicy implements [Policy].
func runPolicy(a *cli.App, args []string, o *policyOptions) error {
	if o.schema {
		return a.PrintRaw(policy.Schema)
	}
	var s *spec.RunSpec
	if o.specFile != "" {
		b, err := os.ReadFile(o.specFile)
		if err != nil {
			return cli.Usagef("--spec: %v", err)
		}
		if s, err = spec.DecodeYAML(b); err != nil {
			return err
		}
	}
	decisions, err := workers.DecideRun(args[0], s, o.signers)
	if err != nil {
		return cli.Usagef("%s", err)
	}
	return printDecisions(a, decisions)
}

func printDecisions(a *cli.App, d workers.Decisions) error {
	var lines, denied []string
	tasks := 0 // denied ones
	for _, t := range d.Tasks {
		lines = append(lines, t.Task+": "+decisionText(t.Decision))
		if !t.Allowed {
			tasks++
		}
	}
	if tasks > 0 {
		denied = append(denied, units.Count(tasks, "task is denied", "tasks are denied"))
	}
	if d.Notify != nil {
		lines = append(lines, "notify: "+decisionText(*d.Notify))
		if !d.Notify.Allowed {
			denied = append(denied, "the webhook is denied")
		}
	}
	if len(lines) == 0 {
		lines = []string{"ok"}
	}
	if !a.Global.JSON {
		fmt.Fprintln(a.Out, strings.Join(lines, "\n"))
	} else if err := a.PrintJSON(struct {
		OK bool `json:"ok"`
		workers.Decisions
	}{len(denied) == 0, d}); err != nil {
		return err
	}
	if len(denied) > 0 {
		return &cli.ExitError{Code: 1, Cause: errors.New(strings.Join(denied, ", "))}
	}
	return nil
}

// decisionText formats a decision for the user.
func decisionText(d policy.Decision) string {
	if !d.Allowed {
		return "denied: " + d.Reason
	}
	text := fmt.Sprintf("allowed by rule %d", d.Rule)
	if d.User != "" {
		text += ", as " + d.User
	}
	return strings.TrimSpace(text)
}
