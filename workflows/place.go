package workflows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// host is one of a run's hosts.
type host struct {
	HeldHost
	tasks []spec.Task
	out   hostapi.ReserveOutput
}

// place reserves hosts for a generation's tasks, and sends them the cluster. If a host could not
// be reserved, the remaining hosts stay in r.hosts to be released.
func (pl *placer) place(ctx workflow.Context, p placement) error {
	if p.requeue {
		if err := pl.settle(ctx, pl.hosts); err != nil {
			return err
		}
		clear(pl.placed)
		if !spec.IsPrivateQueue(pl.queue) {
			pl.fleet.giveUp(ctx, p.generation)
		}
	}
	if p.after > 0 {
		if err := workflow.Sleep(ctx, p.after); err != nil {
			return err
		}
	}
	if p.generation == 0 && len(pl.spec.After) > 0 {
		if err := awaitEarlier(ctx, pl.queue, pl.spec.After); err != nil {
			return err
		}
	}
	if err := pl.settle(ctx, pl.hosts); err != nil {
		return err
	}
	before := pl.hosts
	defer func() { pl.leave(before) }()
	if spec.IsPrivateQueue(pl.queue) && pl.spec.IsElastic() {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf(
			"hosts.count is %s, but an elastic run requires a queue of hosts; submit it, or use a single number of hosts", pl.spec.Hosts.Count), spec.ErrInvalidRunSpec, nil)
	}
	for started := workflow.Now(ctx); ; {
		silent, failure := pl.reserveAndPrepare(ctx, p, before, started)
		if !silent || spec.IsPrivateQueue(pl.queue) {
			return failure
		}
		workflow.GetLogger(ctx).Warn("the run returns to the queue", "error", failure)
		pl.unreserve(ctx, pl.hosts, p.generation)
		pl.former, pl.hosts = append(pl.former, pl.hosts...), nil
		pl.fleet.tellFleet(ctx, fleet.Message{Freed: &fleet.Freed{Run: pl.fleet.inFleet(ctx)}})
	}
}

// reserveAndPrepare tries once to place a generation. silent reports whether the attempt failed
// because a host with a reservation no longer answers.
func (pl *placer) reserveAndPrepare(ctx workflow.Context, p placement, before []*host, started time.Time) (silent bool, failure error) {
	if spec.IsPrivateQueue(pl.queue) {
		failure = pl.placeWherePinned(ctx, p)
	} else {
		failure = pl.placeInFleet(ctx, p, started)
	}
	clear(pl.placed)
	for _, h := range pl.hosts {
		for _, t := range h.tasks {
			pl.placed[t.Name()] = h
		}
	}
	if failure == nil && !spec.IsPrivateQueue(pl.queue) && !p.requeue {
		pl.unreserve(ctx, pl.left(before), p.generation)
	}
	if failure == nil {
		failure = pl.checkBarriers()
	}
	pl.bounds = nil
	clear(pl.heard)
	if failure == nil && len(pl.hosts) > 1 {
		return pl.prepare(ctx, p.generation, pl.spec.PlacementTimeout.Std()-workflow.Now(ctx).Sub(started))
	}
	return false, failure
}

// placeWherePinned reserves the hosts that the run provides: one host for all tasks without an
// address, and for each other task the host at its address.
func (pl *placer) placeWherePinned(ctx workflow.Context, p placement) error {
	asked := slices.Concat(pl.hosts, pl.former)
	pl.hosts = groupByHost(pl.spec.TaskList())
	shared, done, err := pl.share(ctx, "the spec", hostapi.ReserveInput{Spec: pl.sized})
	defer done()
	if err != nil {
		return err
	}
	deadline := pl.spec.PlacementTimeout.Std()
	asking, giveUp := workflow.WithCancel(ctx)
	futures := make([]future[hostapi.ReserveOutput], len(pl.hosts))
	for i, h := range pl.hosts {
		h.Groups = []int{i}
		futures[i] = pl.reserve(asking, h, pl.reserveInput(ctx, p, h, i, shared), pl.queueBefore(asked, i), deadline)
	}
	onRefusal(ctx, futures, giveUp)
	var failure error
	for i, h := range pl.hosts {
		out, err := futures[i].get(ctx)
		if err != nil {
			if err := pl.placementError(h, err); failure == nil || isInvalid(err) && !isInvalid(failure) {
				failure = err
			}
			continue
		}
		pl.reserved(h, out)
	}
	pl.hosts = mergeSame(pl.hosts)
	return failure
}

// reserveInput returns the input for a host's reservation. If the host is the run's only one, its
// input includes all tasks, and thus the whole cluster. shared holds the spec, or is nil.
func (pl *placer) reserveInput(ctx workflow.Context, p placement, h *host, group int, shared *hostapi.Shared) hostapi.ReserveInput {
	in := hostapi.ReserveInput{
		Run: pl.began, Spec: pl.sized, Devices: h.Devices, Group: group, Generation: p.generation, First: p.first,
		Stopping: pl.calls.standing(), Shipped: pl.shipped,
	}
	if shared != nil {
		in.Spec, in.SharedSpec = nil, shared
	}
	in.Elapsed = pl.elapsed(ctx)
	if len(pl.hosts) > 1 {
		in.Tasks = names(h.tasks)
	}
	return in
}

// maxShipped limits the hosts that a reservation's input lists as having the files.
const maxShipped = 4

// reserved records what a host has reserved.
func (pl *placer) reserved(h *host, out hostapi.ReserveOutput) {
	h.out, h.Name = out, out.Host
	h.Queue = spec.InstanceQueue(pl.queue, out.Host, out.Instance)
	delete(pl.absent, h.Queue)
	if s := out.Shipped; s != nil && !slices.Contains(pl.shipped, *s) {
		pl.shipped = append(pl.shipped, *s)
		pl.shipped = pl.shipped[max(0, len(pl.shipped)-maxShipped):]
	}
	pl.found(h)
	for i, t := range h.tasks {
		pl.addresses[t.Name()] = out.Addresses[i]
	}
}

// onRefusal cancels the remaining reservations once a host has refused the spec, since no retry
// can help.
func onRefusal(ctx workflow.Context, futures []future[hostapi.ReserveOutput], giveUp func()) {
	for _, f := range futures {
		workflow.Go(ctx, func(ctx workflow.Context) {
			_, err := f.get(ctx)
			if isInvalid(err) {
				giveUp()
			}
		})
	}
}

// reserve reserves a host for its tasks. It first asks the host worker that had the tasks before,
// if any. If that host worker does not answer soon, it asks any host worker.
func (pl *placer) reserve(ctx workflow.Context, h *host, in hostapi.ReserveInput, before string, deadline time.Duration) future[hostapi.ReserveOutput] {
	summary := reserveSummary(h, in.Generation)
	ask := func(ctx workflow.Context, queue string, deadline time.Duration) future[hostapi.ReserveOutput] {
		return callHere(shipping(placing(ctx, queue, deadline, summary), pl.spec), hostapi.Host.Reserve, in)
	}
	if before == "" {
		return ask(ctx, h.reserveQueue(pl.queue), deadline)
	}
	answer, settable := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		started := workflow.Now(ctx)
		out, err := ask(ctx, before, min(deadline, reserveTakes)).get(ctx)
		if left := deadline - workflow.Now(ctx).Sub(started); err != nil && left > 0 && ctx.Err() == nil {
			out, err = ask(ctx, h.reserveQueue(pl.queue), left).get(ctx)
		}
		settable.Set(out, err)
	})
	return future[hostapi.ReserveOutput]{answer}
}

func reserveSummary(h *host, generation int) string {
	s := fmt.Sprintf("%s for %s", units.Count(len(h.tasks), "task", "tasks"), markdown.Name(h.title()))
	if generation > 0 {
		s += fmt.Sprintf(", generation %d", generation)
	}
	return s
}

// checkBarriers refuses local barriers if the tasks are on several hosts. At the first barrier,
// each host's tasks would wait for tasks that can never arrive on that host.
func (pl *placer) checkBarriers() error {
	if pl.spec.Barriers != spec.BarriersLocal || len(pl.hosts) == 1 {
		return nil
	}
	where := list.Of(pl.hosts, func(h *host) string { return fmt.Sprintf("%s on %s", listed(names(h.tasks)), h.title()) })
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(
		"barriers: local needs all tasks on one host, not %d (%s); pin all tasks to one host, or write barriers: server",
		len(pl.hosts), strings.Join(where, "; ")), spec.ErrPlacement, nil)
}

// prepare sends the whole cluster to the hosts, if there are several. silent reports whether
// prepare failed because a host did not answer.
func (pl *placer) prepare(ctx workflow.Context, generation int, left time.Duration) (silent bool, failure error) {
	in := hostapi.PrepareInput{Run: pl.began, Generation: generation, Cluster: pl.cluster()}
	shared, done, err := pl.share(ctx, "the description of the cluster", in.Cluster)
	defer done()
	if err != nil {
		return false, err
	}
	if shared != nil {
		in.Cluster, in.SharedCluster = hostapi.Cluster{}, shared
	}
	futures := make([]future[hostapi.PrepareOutput], len(pl.hosts))
	all := pl.chooseWitnesses()
	for i, h := range pl.hosts {
		in := in
		if all {
			in.Witnesses = list.Of(pl.witnessesOf(h), func(o *host) spec.HostService { return *o.out.Witness })
		}
		actx := placing(ctx, h.Queue, max(left, preparesWithin(len(pl.hosts))), "the cluster for "+markdown.Name(h.Name))
		futures[i] = call(actx, hostapi.Host.Prepare, in)
	}
	for i, h := range pl.hosts {
		out, err := futures[i].get(ctx)
		if err != nil && failure == nil {
			var refused *temporal.ApplicationError
			silent = temporal.IsTimeoutError(err) && !errors.As(err, &refused)
			failure = pl.placementError(h, err)
		}
		all = all && out.Reaches
	}
	if all {
		short, long, _ := pl.spec.TwoBounds(len(pl.placed))
		pl.bounds = &hostapi.Bounds{Short: short, Long: long}
	}
	return silent, failure
}

// cluster returns the description of a multi-host cluster for the cluster's processes.
func (pl *placer) cluster() hostapi.Cluster {
	tasks := pl.sized.TaskList()
	master := pl.placed[tasks[0].Name()].out
	c := hostapi.Cluster{
		RPCLayer: pl.spec.RPCLayer, Profiles: pl.spec.EnvProfiles, Hosts: len(pl.hosts),
		MasterAddr: spec.HostPart(pl.addresses[tasks[0].Name()]),
		MasterPort: master.MasterPort, JAXPort: master.JAXPort,
	}
	local := make(map[*host]int, len(pl.hosts))
	for _, t := range tasks {
		h := pl.placed[t.Name()]
		c.Members = append(c.Members, hostapi.Member{
			Type: t.Type, Index: t.Index, Rank: t.Rank,
			Host: h.Name, HostIndex: slices.Index(pl.hosts, h), Address: pl.addresses[t.Name()],
			LocalRank: local[h], LocalWorldSize: len(h.tasks),
		})
		local[h]++
	}
	return c
}

// groupByHost groups the tasks by host. Hosts are ordered by their lowest rank. An address on the
// loopback interface fixes the port, not the host.
func groupByHost(tasks []spec.Task) []*host {
	var hosts []*host
	for _, t := range tasks {
		pin := ""
		if t.Address != "" {
			// The address was validated before. If the task is not pinned, it fails on the host.
			if name, _, err := spec.SplitAddress(t.Address); err == nil && !spec.IsLoopback(name) {
				pin = name
			}
		}
		i := slices.IndexFunc(hosts, func(h *host) bool { return h.Pin == pin })
		if i < 0 {
			i = len(hosts)
			hosts = append(hosts, &host{HeldHost: HeldHost{Pin: pin}})
		}
		hosts[i].tasks = append(hosts[i].tasks, t)
	}
	return hosts
}

// mergeSame merges hosts that turned out to be the same. Tasks that any host may take can land on a
// host with pinned tasks.
func mergeSame(hosts []*host) []*host {
	var merged []*host
	for _, h := range hosts {
		i := slices.IndexFunc(merged, func(m *host) bool { return h.Queue != "" && m.Queue == h.Queue })
		if i < 0 {
			merged = append(merged, h)
			continue
		}
		merged[i].Groups = append(merged[i].Groups, h.Groups...)
		merged[i].tasks = append(merged[i].tasks, h.tasks...)
		slices.SortFunc(merged[i].tasks, func(a, b spec.Task) int { return a.Rank - b.Rank })
	}
	return merged
}

func (h *host) reserveQueue(queue string) string {
	if h.Pin == "" {
		return spec.HostsQueue(queue)
	}
	return spec.HostQueue(queue, h.Pin)
}

func (h *host) title() string {
	switch {
	case h.Name != "":
		return "host " + h.Name
	case h.Pin != "":
		return "host " + h.Pin
	}
	return "any host"
}

// placementError returns why a host refused its tasks: a spec error if the host found the spec
// invalid, and otherwise a placement error.
func (pl *placer) placementError(h *host, err error) error {
	var app *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	var why string
	switch {
	case temporal.IsCanceledError(err):
		return err
	case errors.As(err, &app) && app.Type() == spec.ErrInvalidRunSpec:
		var refused spec.RunResult // contains the exit code
		if !app.HasDetails() || app.Details(&refused) != nil {
			return temporal.NewNonRetryableApplicationError(app.Message(), spec.ErrInvalidRunSpec, nil)
		}
		return temporal.NewNonRetryableApplicationError(app.Message(), spec.ErrInvalidRunSpec, nil, refused)
	case app != nil:
		// Report the last refusal even if the deadline ended the attempts.
		why = app.Message()
	case errors.As(err, &timeout) && h.Queue != "":
		why = "its host worker did not answer in time"
	case errors.As(err, &timeout):
		why = fmt.Sprintf("no host worker serves queue %q, %s after the start; start `clusterrun worker` on that host, or correct the address",
			h.reserveQueue(pl.queue), pl.spec.PlacementTimeout)
	default:
		why = reasonOf(err)
	}
	return temporal.NewNonRetryableApplicationError(
		fmt.Sprintf("%s could not be placed on %s: %s", listed(names(h.tasks)), h.title(), why), spec.ErrPlacement, nil)
}

func names(tasks []spec.Task) []string {
	return list.Of(tasks, func(t spec.Task) string { return t.Name() })
}

func listed(names []string) string {
	const most = 5
	return shorten.List(names, most)
}
