package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/system/remedy"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/doctor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// examineTakes limits each check.
const examineTakes = 8 * time.Second

func Doctor(a *cli.App) *cobra.Command {
	var queue string
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Find out what is wrong on this host and server",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), a, queue) },
	}
	cli.QueueFlag(cmd, &queue)
	return cmd
}

// runDoctor implements [Doctor].
func runDoctor(ctx context.Context, a *cli.App, queue string) error {
	found := doctor.Examine(ctx, examineTakes, checks(a, queue))
	worst := doctor.Worst(found)
	if err := a.Print(map[string]any{"ok": worst != doctor.Problem, "findings": found}, func() {
		_, _ = fmt.Fprint(a.Out, findingsText(found)) // the output remembers errors
	}); err != nil {
		return err
	}
	if worst == doctor.Problem {
		return &cli.ExitError{Code: 1}
	}
	return nil
}

// findingsText returns a line for each finding, and one for each remedy.
func findingsText(found []doctor.Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%-8s %-8s %s\n", f.Level, f.Check, spec.OneLine(f.Text))
		if f.Remedy != "" {
			fmt.Fprintf(&b, "%-17s -> %s\n", "", spec.OneLine(f.Remedy))
		}
	}
	return b.String()
}

// checks returns the checks to make.
func checks(a *cli.App, queue string) []doctor.Check {
	read := sync.OnceValue(func() doctor.Host { return doctor.ReadHost("/") })
	host := func(judge func(doctor.Host) []doctor.Finding) func(context.Context) []doctor.Finding {
		return func(context.Context) []doctor.Finding { return judge(read()) }
	}
	return []doctor.Check{
		{Name: "server", Find: func(ctx context.Context) []doctor.Finding { return examineServer(ctx, a, queue) }},
		{Name: "versions", Find: func(ctx context.Context) []doctor.Finding { return examinePrograms(ctx, a) }},
		{Name: "cgroups", Find: host(examineCgroups)},
		{Name: "disk", Find: func(context.Context) []doctor.Finding { return examineDisks(a) }},
		{Name: "shm", Find: func(context.Context) []doctor.Finding { return examineShm() }},
		{Name: "gpu", Find: func(ctx context.Context) []doctor.Finding { return examineGPUs(ctx, read()) }},
	}
}

// notUsage returns the finding for wrong settings. Other commands treat them as mistakes in the
// command line, but doctor reports them as a result.
func notUsage(err error) []doctor.Finding {
	what, do := remedy.Split(err)
	return doctor.CheckUnreached(errors.New(what), cmp.Or(do, "check TEMPORAL_* in the environment, and the profile: "+os.Getenv("TEMPORAL_CONFIG_FILE")))
}
