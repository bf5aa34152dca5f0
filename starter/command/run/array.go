package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// setSweep turns the run into a sweep if the flags request one.
func setSweep(a *cli.App, s *spec.RunSpec, o *runOptions) error {
	many, err := o.array.Given()
	if err != nil || !many {
		return err
	}
	o.sweep, err = o.array.Sweep(a, s, o.id, atOnceHere(s))
	return err
}

// atOnceHere returns how many trials at a time this machine has processors for.
func atOnceHere(s *spec.RunSpec) int {
	return min(max(1, specs.LocalMachine().Cpus/max(1, len(s.TaskList()))), sweep.MaxAtOnce)
}

// checkSweep refuses flags that do not apply to a sweep on this machine.
func checkSweep(cmd *cobra.Command, s *spec.RunSpec, f *specs.SpecFlags, o *runOptions) error {
	if o.sweep == nil {
		return nil
	}
	for _, flag := range []string{"foreground", stdinFlag, coordinatorFlag, "remote"} {
		if cmd.Flags().Changed(flag) {
			return cli.Usagef("--%s applies to one run; omit it or --array. `clusterrun submit --array` starts a sweep on host workers", flag)
		}
	}
	gpus := s.Devices != nil || s.GPUsPerTask != nil
	for _, g := range s.Tasks {
		gpus = gpus || g.Devices != nil || g.GPUsPerTask != nil
	}
	switch {
	case f.Others != nil:
		return cli.Usagef("%s: run --array uses only this machine. Start `clusterrun worker` on the hosts, and use submit --array", f.Others.Flag)
	case gpus && o.sweep.AtMost > 1:
		return cli.Usagef("--array: run does not divide GPUs among trials. Use submit --array, which does, or --at-most 1")
	}
	return nil
}

// trialBits is the number of bits for a task's rank in its output key.
const trialBits = 20

// trialPrefix returns the output prefix of a trial's task. It consists of the trial's number
// and, if the trials have several tasks, the task's name.
func trialPrefix(s *spec.RunSpec) func(key, attempt int) string {
	tasks := s.TaskList()
	return func(key, _ int) string {
		trial, rank := key>>trialBits, key&(1<<trialBits-1)
		if len(tasks) == 1 || rank >= len(tasks) {
			return fmt.Sprintf("[%d]: ", trial)
		}
		return fmt.Sprintf("[%d %s]: ", trial, tasks[rank].Name())
	}
}

// Once a trial has ended, showTrials shows its output, like GNU parallel, and why it failed, if it
// did.
func (o *output) showTrials(ctx context.Context, of *sweep.Spec, root string, quiet bool) {
	trials, err := of.Grid.Parse()
	if err != nil {
		o.app.Say("%s", err) // cannot happen: the grid was validated earlier
		return
	}
	followTrials(ctx, o.run, func(end trialEnd) {
		if !quiet && root != spec.NullDir {
			o.showTrial(ctx, root, end)
		}
		if end.State == sweep.Failed {
			words := sweep.Words(trials.Values(end.Trial))
			o.app.Say("%s", o.app.Color.Bad(fmt.Sprintf("trial %d (%s) failed: %s", end.Trial, shorten.Text(words, 200), firstLine(end.Message))))
		}
	})
}

func (o *output) showTrial(ctx context.Context, root string, end trialEnd) {
	key := end.Trial << trialBits
	dir := tasklog.RunDir(root, end.RunID, end.ExecutionID)
	trial := filesHere(starter.Get(nil, end.RunID, end.ExecutionID)).Follow(files.Options{OnError: func(err error) { o.app.Say("%s", err) }}, func(c tasklog.Chunk) {
		c.Rank |= key
		o.screen.Deliver(c)
	})
	trial.ReadDir(dir)
	_ = trial.Finish(ctx)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return shorten.Text(line, 500)
}
