package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// maxExits limits the exits reported per task, and thereby the payload.
	maxExits = 10
	// maxReleasePayload leaves a margin under the server's limit of 2 MiB.
	maxReleasePayload = 1 << 20
)

// Release ends the run on this host. It stops the remaining processes and frees the ports. A
// repeated call returns the same result, because the plan stays until the reconciler finds the run
// closed.
func (h *Host) Release(ctx context.Context, in hostapi.ReleaseInput) (hostapi.ReleaseOutput, error) {
	run := runOf(ctx, in.Run)
	p, err := h.plans.get(run)
	if err != nil && !errors.Is(err, errNoPlan) {
		return hostapi.ReleaseOutput{}, err
	}
	stops, err := p.stops()
	if err != nil {
		return hostapi.ReleaseOutput{}, err
	}
	reply, err := h.Supervisor.Release(ctx, supervisor.ReleaseRequest{Run: run, Stops: stops})
	if err != nil {
		return hostapi.ReleaseOutput{}, err
	}
	if err := h.reservations.noteStuck(run, reply.Processes); err != nil && !errors.Is(err, errNoPlan) {
		return hostapi.ReleaseOutput{}, err
	}
	h.services.Release(ctx, run)
	out := hostapi.ReleaseOutput{Exits: map[string][]spec.Exit{}, Values: map[string]json.RawMessage{}}
	if p != nil {
		out.Served = p.Served
		h.filterLines(ctx, p)
	}
	out.SharedMemory = h.reportShm(p, reply.Processes)
	for _, q := range reply.Processes {
		if q.Exit == nil {
			continue
		}
		exit, value := h.describe(p, q)
		if p != nil {
			exit.Restart = p.number(q)
		}
		out.Usage = out.Usage.With(exit.Usage)
		exits := append(out.Exits[q.Key.Task], exit)
		if len(exits) > maxExits {
			exits = exits[1:]
		}
		out.Exits[q.Key.Task] = exits
		delete(out.Values, q.Key.Task)
		if value != nil {
			out.Values[q.Key.Task] = value
		}
	}
	fit(&out)
	if p != nil && p.Spec != nil && p.Spec.ReturnOutput {
		_ = p.User.Do(func() error {
			out.Output = lastOutput(p, reply.Processes)
			return nil
		})
	}
	if p != nil {
		changed, err := h.plans.change(run, func(p *plan) error {
			p.Released = true
			return nil
		})
		if err == nil {
			out.Served = changed.Served // final from here on
		}
		if err == nil && len(changed.Stuck) > 0 {
			h.reservations.rejoin()
		}
		if err != nil && !errors.Is(err, errNoPlan) {
			h.Log.Warn("a released run keeps its slots for now", zap.Error(err))
		}
		// The plan must already record the release: this call ends the queue's leases, which are
		// retried immediately.
		h.services.ReleaseClosures(p.Run)
	}
	return out, nil
}

// fit drops details until the answer is small enough for the server. It first drops exits, which
// may fill half of the answer; RunTask has already reported most of them. Then it drops the largest
// values, and lists them in LeftOut.
func fit(o *hostapi.ReleaseOutput) {
	each := func(less func(exits []spec.Exit) []spec.Exit) func() {
		return func() {
			for task, exits := range o.Exits { // the key shows that the task was here
				o.Exits[task] = less(exits)
			}
		}
	}
	shorten.ToFit(o.Exits, maxReleasePayload/2,
		each(func(exits []spec.Exit) []spec.Exit { return exits[len(exits)-1:] }),
		each(changed(func(e *spec.Exit) { e.Message = shorten.Text(e.Message, 200) })),
		each(changed(func(e *spec.Exit) {
			e.Message, e.GPUError, e.LogDir, e.ErrorFile, e.TraceFile, e.Usage = "", "", "", "", "", spec.Usage{}
		})),
		each(func(exits []spec.Exit) []spec.Exit { return slices.DeleteFunc(exits, spec.Exit.OK) }),
		each(func([]spec.Exit) []spec.Exit { return []spec.Exit{} }),
	)
	left := shorten.Size(o) - maxReleasePayload
	sizes := map[string]int{}
	for task, value := range o.Values {
		sizes[task] = shorten.Size(value)
	}
	tasks := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Or(sizes[b]-sizes[a], strings.Compare(a, b)) })
	for _, task := range tasks {
		if left <= 0 {
			return
		}
		left -= sizes[task]
		delete(o.Values, task)
		o.LeftOut = append(o.LeftOut, task)
	}
}

// changed returns a function that applies change to each exit in a list.
func changed(change func(*spec.Exit)) func([]spec.Exit) []spec.Exit {
	return func(exits []spec.Exit) []spec.Exit {
		for i := range exits {
			change(&exits[i])
		}
		return exits
	}
}
