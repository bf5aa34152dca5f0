package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/bench"
	"github.com/clusterrun/clusterrun/workers/embedded"
)

const benchHelp = `Measures for about a minute how fast this machine starts runs, restarts processes and ends
runs, how long barriers and closures take, and how much memory a process costs. Beside each
figure it prints a lower bound from the same benchmark, such as a shell that starts the
same processes. RATIO compares the medians: the figures depend on the machine and its other
load, the ratios much less.

It uses its own embedded server and state directory, and removes them at the end, also
after Ctrl-C.

Exit codes:
  0    measured
  2    mistake in the command line
  125  something could not be measured
  130  stopped by Ctrl-C`

// benchResult is what bench prints.
type benchResult struct {
	Version string         `json:"version"`
	Machine bench.Machine  `json:"machine"`
	Figures []bench.Figure `json:"figures"`
}

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure how fast runs are on this machine",
		Long:  benchHelp,
		Example: `  clusterrun bench
  clusterrun bench --json > before.json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, external, err := a.external(cmd.Context()); err != nil {
				return err
			} else if external {
				return usagef("bench measures with a server of its own, and another one is named (--address, TEMPORAL_ADDRESS or a profile); leave that out")
			}
			ctx, stop := endedBy(cmd.Context())
			defer stop()
			r, err := a.bench(ctx)
			if ctx.Err() != nil {
				return &exitError{code: exitInterrupted, cause: fmt.Errorf("interrupted; nothing is left behind")}
			}
			if err != nil {
				return err
			}
			if a.global.json {
				return a.printJSON(r)
			}
			a.printBench(r)
			return nil
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "program", Hidden: true, Short: "A program that bench measures; started by it",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("the name of the program is missing")
			}
			return bench.Program(args[0], args[1:])
		},
	})
	return cmd
}

func (a *app) bench(ctx context.Context) (r *benchResult, err error) {
	r = &benchResult{Version: buildInfo().Version, Machine: bench.ThisMachine()}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find our own executable: %w", err)
	}
	dir, err := os.MkdirTemp("", "clusterrun-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	a.global.stateDir = filepath.Join(dir, "state")
	server, err := a.home().StartForeground(ctx, 0, 0, "--headless")
	if err != nil {
		return nil, a.explain(err)
	}
	defer stopServer(server)
	// Not by dial, which would start the server again when it is stopped.
	client, err := a.dialOnce(ctx, a.embedded(&server.Server))
	if err != nil {
		return nil, a.explain(err)
	}
	defer client.Close()
	m := &bench.Measurement{
		Place: &bench.Place{Dir: dir}, Client: client,
		Ours:    bench.Clusterrun(self, a.global.stateDir, func() []int { return []int{server.PID} }),
		Chief:   bench.WithChief(self, a.global.stateDir),
		Program: []string{self, "bench", "program"},
		Tell:    func(string) {},
	}
	if isTerminal(a.err) {
		m.Tell = func(text string) { fmt.Fprintf(a.err, "\r\x1b[K%s", text) }
		defer fmt.Fprint(a.err, "\r\x1b[K")
	}
	r.Figures, err = m.Figures(ctx)
	return r, err
}

// stopServer stops a server also where what it served was interrupted.
func stopServer(s *embedded.Foreground) {
	ctx, cancel := context.WithTimeout(context.Background(), bringUpBound)
	defer cancel()
	_ = s.Stop(ctx)
}

func (a *app) printBench(r *benchResult) {
	fmt.Fprintf(a.out, "%s, clusterrun %s\n\n", r.Machine, r.Version)
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tBEST\tMEDIAN\tFLOOR\tRATIO\tTHE FLOOR IS")
	for _, f := range r.Figures {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, digits(f.Best)+" "+f.Unit, digits(f.Median)+" "+f.Unit,
			digits(f.Floor)+" "+f.Unit, dash(ratio(f)), f.FloorIs)
	}
	w.Flush()
}

// ratio is empty where the floor is nothing.
func ratio(f bench.Figure) string {
	if f.Ratio == 0 {
		return ""
	}
	return digits(f.Ratio)
}

// digits writes a number with three digits, and all of those before the point.
func digits(f float64) string {
	switch {
	case f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}
