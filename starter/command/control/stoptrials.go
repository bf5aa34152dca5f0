package control

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// namesTasks reports whether the arguments after the first look like its tasks.
func namesTasks(args []string) bool {
	if len(args) < 2 {
		return false
	}
	_, _, noTask := spec.ParseTaskName(args[1])
	_, noRank := strconv.Atoi(args[1])
	return noTask == nil || noRank == nil
}

// stopTrials asks open sweeps to stop the trials that the arguments name, such as hp-x2k4.17 or
// 'hp-x2k4.1?'. This includes trials that have not started. It returns the other arguments.
func stopTrials(ctx context.Context, a *cli.App, c client.Client, args []string) (others []string, err error) {
	for _, arg := range args {
		at := strings.LastIndexByte(arg, '.')
		if at <= 0 || spec.IsPattern(arg[:at]) || strings.Trim(arg[at+1:], "0123456789*?[]-") != "" {
			others = append(others, arg)
			continue
		}
		id, pattern := arg[:at], arg[at+1:]
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, cli.CheckPatterns([]string{arg})
		}
		r := starter.Get(c, id, "")
		if s, err := r.Summary(ctx); err != nil || !s.Sweep || !s.Open {
			others = append(others, arg)
			continue
		}
		trials := "trials"
		if !spec.IsPattern(pattern) {
			trials = "trial"
		}
		if s, err := r.Status(ctx); err == nil && s.Sweep != nil && !anyTrial(s.Sweep.Trials, sweep.Matching(pattern)) {
			return nil, cli.Usagef("%s: sweep %s has no such trial; its trials are 0 to %d", arg, id, s.Sweep.Trials-1)
		}
		if err := cli.SignalSweep(ctx, r, spec.SignalStopTrials, pattern); err != nil {
			return nil, err
		}
		if err := printStopped(a, Stopped{RunID: arg, State: "stopping", line: fmt.Sprintf("stopping: %s %s of sweep %s", trials, pattern, id)}); err != nil {
			return nil, err
		}
	}
	return others, nil
}

// anyTrial reports whether any trial number less than trials matches.
func anyTrial(trials int, matches func(trial int) bool) bool {
	for trial := range trials {
		if matches(trial) {
			return true
		}
	}
	return false
}

// abandonTrials terminates the open trials of a sweep that was terminated on the server.
func abandonTrials(ctx context.Context, c client.Client, r *starter.Run, reason string) error {
	ids, err := cli.TrialIDs(ctx, c, r.ID, cli.OpenRuns)
	for _, id := range ids {
		if err == nil {
			err = starter.Get(c, id, "").Terminate(ctx, reason)
		}
	}
	return err
}
