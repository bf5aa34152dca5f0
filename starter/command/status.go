package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/shipped"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/plural"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func (a *app) statusCommand() *cobra.Command {
	return a.onRun(&cobra.Command{
		Use:   "status [flags] RUN",
		Short: "Show how a run and its tasks are doing",
		Long: `Shows how a run is doing, and each of its tasks: state, host, process ID, restarts,
and how it ended.

` + exitCodesOfRequests,
		Example: "  clusterrun status iris-x2k4\n  clusterrun status --json iris-x2k4 | jq '.tasks[] | select(.state == \"running\") | .pid'",
	}, func(ctx context.Context, r *starter.Run) error {
		s, err := r.Status(ctx)
		if err != nil {
			return err
		}
		if a.global.json {
			return a.printJSON(s)
		}
		a.printStatus(s)
		return nil
	})
}

func (a *app) printStatus(s *starter.Status) {
	state := string(s.State)
	switch {
	case s.Result != nil:
		state = string(s.Result.Verdict)
	case !s.Open && s.Message != "":
		state = strings.TrimPrefix(s.Message, fmt.Sprintf("run %s was ", s.RunID))
	case s.Unanswered:
		state = "open, but nobody executes it at the moment (is its `clusterrun worker`, `dev` or `run` there?)"
	}
	took := time.Since(s.Started)
	if !s.Open {
		took = s.Ended.Sub(s.Started)
	}
	generation := ""
	if s.Generation > 0 {
		generation = fmt.Sprintf(", generation %d", s.Generation)
	}
	fmt.Fprintf(a.out, "run %s: %s%s, %s\n", s.RunID, state, generation, roughly(took))
	if s.Elastic != nil {
		fmt.Fprintf(a.out, "elastic: %s\n", s.Elastic)
	}
	if s.Archive != nil {
		fmt.Fprintf(a.out, "it ships %s\n", archiveLine(*s.Archive))
	}
	for _, w := range s.Waiting {
		fmt.Fprintf(a.out, "waiting for %s\n", waitingLine(w, time.Now()))
	}
	for _, h := range s.Silent {
		fmt.Fprintln(a.out, h.Text(time.Now()))
	}
	if s.OnDisconnect != "" && s.OnDisconnect != spec.OnDisconnectKeep && s.Open {
		fmt.Fprintf(a.out, "a host that hears nothing of the server for %s stops its processes (on_disconnect)\n", s.OnDisconnect)
	}
	if s.Stopping != nil && s.Result == nil {
		fmt.Fprintf(a.out, "stopping together: %s\n", stoppingLine(*s.Stopping, time.Now()))
	}
	if s.Result != nil {
		if s.Result.Verdict != spec.VerdictSucceeded && s.Result.Message != "" {
			fmt.Fprintf(a.out, "%s\n", inLocalTime(s.Result.Message))
		}
		for _, line := range stoppedTogether(s.Result) {
			fmt.Fprintf(a.out, "%s\n", line)
		}
	}
	for _, t := range s.Tasks {
		if t.Exit != nil && t.Exit.DroppedBytes > 0 {
			fmt.Fprintf(a.out, "at least %s of the output of %s were dropped (logs.on_full)\n", shipped.Size(t.Exit.DroppedBytes), t.Name)
		}
	}
	if len(s.Tasks) == 0 {
		return
	}
	fmt.Fprintln(a.out)
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	shown := slices.ContainsFunc(s.Tasks, func(t starter.TaskStatus) bool { return t.Progress != nil })
	heading := "TASK\tSTATE\tHOST\tPID\tRESTARTS\tEXIT\tCAUSE"
	if shown {
		heading += "\tPROGRESS"
	}
	fmt.Fprintln(w, heading)
	for _, t := range s.Tasks {
		exit, cause := exitColumns(t.Exit)
		state := string(t.State)
		if !t.NextStart.IsZero() {
			state = "restarting"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s", t.Name, dash(state), dash(t.Host), number(t.PID), t.Restarts, exit, cause)
		if shown {
			fmt.Fprintf(w, "\t%s", progressColumn(t.Progress))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

// waitingLine returns what a run waits for, why, and for how long.
func waitingLine(w starter.Waiting, now time.Time) string {
	w.Refusal = inLocalTime(w.Refusal)
	if w.Position > 0 {
		return fmt.Sprintf("%s (position %d in queue %s)", strings.TrimPrefix(w.Refusal, "waits for "), w.Position, w.Queue)
	}
	place := "any host"
	if w.Host != "" {
		place = "host " + w.Host
	}
	if f := w.Fetching; f != nil {
		verb := "fetches"
		if f.Unpacking {
			verb = "unpacks"
		}
		return fmt.Sprintf("host %s, which %s what the run ships: %s of %s", f.Host, verb, shipped.Size(f.Bytes), shipped.Size(f.Size))
	}
	text := fmt.Sprintf("%s (queue %s): %s", place, w.Queue, cmp.Or(w.Refusal, "no host worker has answered yet"))
	if left := w.Until.Sub(now); !w.Until.IsZero() {
		text += fmt.Sprintf("; given up in %s", roughly(max(0, left)))
	}
	return text
}

// archiveLine describes what a run ships.
func archiveLine(a spec.Archive) string {
	return fmt.Sprintf("%s in %s, SHA-256 %s", shipped.Size(int64(a.Size)), plural.Of(a.Files, "file", "files"), a.Digest)
}

// exitColumns returns the exit code, or the signal's name, and the cause.
func exitColumns(e *spec.Exit) (exit, cause string) {
	if e == nil {
		return "-", "-"
	}
	if e.Signal != "" {
		return e.Signal, string(e.Cause)
	}
	return strconv.Itoa(e.ExitCode), string(e.Cause)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// roughly writes a time span the way one says it.
func roughly(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return strings.TrimSuffix(d.Round(100*time.Millisecond).String(), ".0s")
	default:
		return d.Round(time.Second).String()
	}
}
