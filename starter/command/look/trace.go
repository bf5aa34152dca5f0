package look

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/record/trace"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

// exportTrace prints the trace of a run, writes it to a file, or sends it to a collector.
func exportTrace(ctx context.Context, a *cli.App, r *starter.Run, file string, send bool) error {
	to, err := trace.CollectorOf(os.Getenv)
	if send && err != nil {
		return cli.Usagef("%s", err)
	}
	of, err := AccountHere(ctx, r)
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
	switch {
	case !send && (file == "" || file == "-"):
		return a.PrintJSON(t)
	case !send:
		return exportFile(ctx, a, of, file, func(w io.Writer) error { return json.NewEncoder(w).Encode(t) })
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
