package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

func Show(a *cli.App) *cobra.Command {
	var only bool
	cmd := cli.OnRun(a, &cobra.Command{
		Use:   "show [flags] RUN",
		Short: "Show how a run was started",
	}, func(ctx context.Context, r *starter.Run) error {
		if !only {
			of, err := accountOf(ctx, a, r)
			if err != nil {
				return err
			}
			if a.Global.JSON {
				return a.PrintJSON(of)
			}
			return printAccount(a, of)
		}
		s, err := SpecOfRun(ctx, r)
		if err != nil {
			return err
		}
		if a.Global.JSON {
			return a.PrintJSON(s)
		}
		text, err := s.YAML()
		if err != nil {
			return err
		}
		_, err = a.Out.Write(text)
		return err
	})
	cmd.Flags().BoolVar(&only, "spec", false, "print only the spec, in the format that `clusterrun run` reads")
	return cmd
}

// SpecOfRun returns a run's spec in a form that can be used to start another run.
func SpecOfRun(ctx context.Context, r *starter.Run) (*spec.RunSpec, error) {
	s, err := r.Spec(ctx)
	if err != nil {
		return nil, err
	}
	s.Signature = nil
	s.Ship.Archive, s.Ship.From = nil, nil
	return s, nil
}

// filesTake limits reading processes' files on other hosts.
const filesTake = 10 * time.Second

// accountOf returns everything known about a run, on this machine and on hosts that serve their
// files.
func accountOf(ctx context.Context, a *cli.App, r *starter.Run) (*runrecord.Account, error) {
	of, err := AccountHere(ctx, r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, filesTake)
	defer cancel()
	files := r.Files(of.Status)
	defer files.Close()
	_ = of.AddFiles(ctx, files) // what cannot be read is unknown
	return of, nil
}

// AccountHere is like accountOf, but ignores other hosts.
func AccountHere(ctx context.Context, r *starter.Run) (*runrecord.Account, error) {
	status, err := r.Status(ctx)
	if err != nil {
		return nil, err
	}
	histories, err := runrecord.History(ctx, r)
	if err != nil {
		return nil, err
	}
	s, err := r.Spec(ctx)
	if err != nil && !starter.IsError[*spec.InvalidSpecError](err) {
		return nil, err // an invalid spec is encrypted, or of a later version
	}
	of := runrecord.New(status, s, histories)
	if status.Sweep != nil {
		if of.Sweep, err = r.SweepSpec(ctx); err != nil {
			return nil, err
		}
		of.Sweep.Run = nil // it is of.Spec
	}
	return of, nil
}

// whyNoSpec returns why a run's spec is unknown, and the remedy.
func whyNoSpec(of *runrecord.Account) string {
	why := "cannot read its spec: " + of.WhyNoSpec()
	if len(of.Keys) == 0 {
		return why
	}
	return why + "; decode it with the keys in FILE: --codec-keys FILE"
}

func printAccount(a *cli.App, of *runrecord.Account) error {
	s := of.Status
	state := string(s.State)
	if s.Verdict != "" {
		state = string(s.Verdict)
	}
	what := "run"
	if of.Sweep != nil {
		what = "sweep"
	}
	fmt.Fprintf(a.Out, "%s %s: %s, started %s by %s\n", what, s.RunID, state, s.Started.Local().Format(cli.LocalTime), cli.OrDash(spec.OneLine(s.Owner)))
	if why := reasonOfEnd(s); why != "" {
		fmt.Fprintln(a.Out, spec.EscapeControl(why))
	}
	if line := phasesLine(of.Phases); line != "" {
		fmt.Fprintln(a.Out, line)
	}
	if of.Sweep != nil {
		fmt.Fprintf(a.Out, "\n%s\n", gridLines(of.Sweep))
	}
	if of.Source != nil {
		fmt.Fprintln(a.Out, "\nsource:")
		for _, line := range of.Source.Lines() {
			fmt.Fprintf(a.Out, "  %s\n", spec.EscapeControl(line))
		}
	}
	for _, g := range sameStarts(of) {
		fmt.Fprintf(a.Out, "\n%s: by clusterrun %s in %s\n", shorten.List(g.tasks, cli.MaxNames), spec.OneLine(g.start.Version), spec.OneLine(g.start.Dir))
		for _, f := range g.start.Files {
			fmt.Fprintf(a.Out, "  %s (%d bytes of %s)\n", spec.OneLine(f.Path), f.Size, f.Modified.Local().Format(cli.LocalTime))
		}
		printVariables(a, "set by the run", g.start.Set)
		printInherited(a, g.start.Inherited)
	}
	if of.Spec == nil {
		if s.Open || s.Result != nil || s.Ending != "" {
			fmt.Fprintln(a.Out, "\n"+whyNoSpec(of))
		}
		return nil
	}
	hidden := of.Spec.WithoutSecrets()
	text, err := hidden.YAML()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "\nspec:\n  %s\n", strings.ReplaceAll(strings.TrimRight(spec.EscapeControl(string(text)), "\n"), "\n", "\n  "))
	return err
}

// gridLines describes a sweep's trials.
func gridLines(of *sweep.Spec) string {
	grid, err := of.Grid.Parse()
	if err != nil {
		return err.Error()
	}
	array := cmp.Or(of.Grid.Product, "a table of "+strings.Join(grid.Names(), ", "))
	text := fmt.Sprintf("%s, at most %d at a time: %s", units.Count(grid.Len(), "trial", "trials"), of.AtMost, spec.EscapeControl(array))
	if of.MaxFailures != nil {
		text += fmt.Sprintf("\nno more trials start after %s", units.Count(*of.MaxFailures+1, "failure", "failures"))
	}
	if of.Grid.Product != "" {
		return text
	}
	for i := range min(grid.Len(), maxRows) {
		text += fmt.Sprintf("\n  %d: %s", i, shorten.Text(spec.OneLine(sweep.Words(grid.Values(i))), 200))
	}
	if more := grid.Len() - maxRows; more > 0 {
		text += fmt.Sprintf("\n  and %d more", more)
	}
	return text
}

// reasonOfEnd returns why a run ended if the reason was not a process, for example because the run
// was refused or did not find hosts.
func reasonOfEnd(s *starter.Status) string {
	switch {
	case s.Open:
		return ""
	case s.Result == nil:
		return s.Message
	case s.Result.Verdict != spec.VerdictSucceeded && s.Result.FirstFailure == nil:
		return s.Result.Message
	}
	return ""
}

// phasesLine formats the phases, for example as "queued 10ms, placing 1.2s".
func phasesLine(phases []runrecord.Phase) string {
	parts := list.Of(phases, func(p runrecord.Phase) string { return p.Name + " " + seconds(p.Seconds) })
	return strings.Join(parts, ", ")
}

func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return cli.Roughly(d)
}

// startOfTasks describes how tasks were started that were all started in the same way.
type startOfTasks struct {
	tasks []string
	start *tasklog.Start
}

// sameStarts returns how the first task of each type was started. Other tasks of the same type
// differ only in their numbers.
func sameStarts(of *runrecord.Account) (groups []startOfTasks) {
	byType := map[string]int{}
	for i, t := range of.Tasks {
		if t.Start == nil || i >= len(of.Status.Tasks) {
			continue
		}
		typ := of.Status.Tasks[i].Type
		at, ok := byType[typ]
		if !ok {
			at = len(groups)
			byType[typ] = at
			groups = append(groups, startOfTasks{start: t.Start})
		}
		groups[at].tasks = append(groups[at].tasks, t.Name)
	}
	return groups
}

// printVariables prints variables except those that clusterrun sets for every run.
func printVariables(a *cli.App, what string, variables map[string]*string) {
	fmt.Fprintf(a.Out, "  %s:\n", what)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		switch value := variables[name]; {
		case strings.HasPrefix(name, "CLUSTERRUN_"):
		case value == nil:
			fmt.Fprintf(a.Out, "    %s (not stored: perhaps a secret)\n", spec.OneLine(name))
		default:
			const most = 200
			fmt.Fprintf(a.Out, "    %s=%s\n", spec.OneLine(name), strings.ReplaceAll(shorten.Text(spec.EscapeControl(*value), most), "\n", `\n`))
		}
	}
}

// printInherited prints the names of variables whose values were not kept.
func printInherited(a *cli.App, names []string) {
	fmt.Fprintln(a.Out, "  inherited, without their values:")
	for _, name := range names {
		if !strings.HasPrefix(name, "CLUSTERRUN_") {
			fmt.Fprintf(a.Out, "    %s\n", spec.OneLine(name))
		}
	}
}
