package look

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/record/trace"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

func Trace(a *cli.App) *cobra.Command {
	var send bool
	cmd := cli.OnRun(a, &cobra.Command{
		Use:   "trace [flags] RUN",
		Short: "Print a run as an OpenTelemetry trace, or send it",
		Long: `Prints the trace of a run that has ended, as OTLP JSON: a span for the run, one for each of
its phases (queued, placing, launch, running, ending), one for each process with its host,
exit code and cause, and one for each round of a barrier that the server held. Rounds
within a single host, without "barriers: server", are not known. The trace ID is the
execution ID of the run, so sending it twice makes no second trace.

--send sends it over HTTP to the collector that the OpenTelemetry variables name:
OTEL_EXPORTER_OTLP_ENDPOINT (default: http://localhost:4318) or
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, and OTEL_EXPORTER_OTLP_HEADERS. OTEL_SERVICE_NAME is
the name of the service (default: clusterrun).

Exit codes:
  0    printed, or accepted by the collector
  2    mistake in the command line, or a run that has not ended
  125  the server or the collector could not do it`,
		Example: "  clusterrun trace iris-x2k4 > trace.json\n  OTEL_EXPORTER_OTLP_ENDPOINT=http://jaeger:4318 clusterrun trace --send --last",
	}, func(ctx context.Context, r *starter.Run) error {
		to, err := trace.CollectorOf(os.Getenv)
		if send && err != nil {
			return cli.Usagef("%s", err)
		}
		of, err := AccountOf(ctx, r)
		if err != nil {
			return err
		}
		if of.Status.Open {
			return cli.Usagef("run %s has not ended; `clusterrun wait %s` waits for that", r.ID, r.ID)
		}
		rounds, err := roundsOf(ctx, a, r)
		if err != nil {
			return err
		}
		t := trace.New(of, rounds, cmp.Or(os.Getenv("OTEL_SERVICE_NAME"), "clusterrun"))
		if !send {
			return a.PrintJSON(t)
		}
		if err := to.Send(ctx, t); err != nil {
			return err
		}
		spans := t.ResourceSpans[0].ScopeSpans[0].Spans
		if a.Global.JSON {
			return a.PrintJSON(map[string]any{"trace_id": spans[0].TraceID, "spans": len(spans)})
		}
		_, err = fmt.Fprintln(a.Out, spans[0].TraceID)
		a.Say("sent %s to %s", plural.Of(len(spans), "span", "spans"), to.URL)
		return err
	})
	cmd.Flags().BoolVar(&send, "send", false, "send it to a collector instead of printing it")
	return cmd
}

// maxRounds is the largest number of rounds in a trace. Collectors accept a few megabytes.
const maxRounds = 10_000

// roundsOf returns the rounds of barriers for the trace of a run. It reports rounds that are
// left out.
func roundsOf(ctx context.Context, a *cli.App, r *starter.Run) ([]starter.Round, error) {
	rounds, err := r.Rounds(ctx)
	if len(rounds) > maxRounds {
		a.Say("the run has %d rounds of barriers; the first %d are in the trace", len(rounds), maxRounds)
		rounds = rounds[:maxRounds]
	}
	return rounds, err
}
