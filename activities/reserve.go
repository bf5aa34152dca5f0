package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// loopback is the address of tasks that all run on one host, so that their ports cannot be reached
// from outside.
const loopback = "127.0.0.1"

// Reserve reserves this host for a run's tasks. It checks whatever can be checked in advance,
// leases ports and stores the plan. It is idempotent by run and generation. If the spec cannot run
// on this host, Reserve fails immediately with InvalidRunSpec. If no slots or ports are free, the
// run can be tried elsewhere.
func (h *Host) Reserve(ctx context.Context, in hostapi.ReserveInput) (out hostapi.ReserveOutput, err error) {
	run := runOf(ctx, in.Run)
	server, err := h.Server.KnownIdentity(ctx, run.Namespace)
	if err != nil {
		return out, err
	}
	if at := in.SharedSpec; at != nil {
		var shared hostapi.ReserveInput
		if err := h.Server.ReadShared(ctx, *at, &shared); err != nil {
			return out, err
		}
		in.Spec, in.Unknown = shared.Spec, shared.Unknown
	}
	tasks, leave, err := h.mayReserve(ctx, run, in)
	if err != nil {
		return out, err
	}
	if err := h.reservations.awaitRoom(ctx, run, in, tasks); err != nil {
		return out, err
	}
	user, err := h.reservations.userFor(ctx, leave.as)
	if err != nil {
		return out, err
	}
	unlock, err := h.ships.bring(ctx, run, in, leave.statement, user)
	if err != nil {
		return out, err
	}
	defer unlock()
	if err := h.checkTasks(run, in, tasks, user); err != nil {
		return out, err
	}
	lease, addresses, err := h.reservations.leasePorts(ctx, run, in, tasks)
	if err != nil {
		return out, err
	}
	out = hostapi.ReserveOutput{
		Host: h.Name, Instance: h.Instance, Addresses: addresses,
		MasterPort: lease[0], JAXPort: lease[1],
	}
	p, err := h.keepPlan(run, in, tasks, leave, out, func(p *plan) {
		p.Server, p.Signers, p.Statement, p.As, p.User = server, leave.signers, leave.statement, leave.as, user
	})
	if err != nil {
		return out, err
	}
	if in.Stopping != nil {
		h.services.SetStopping(run, *in.Stopping)
	}
	if dir := p.runDir(); dir != "" && h.Files != nil {
		out.Service, out.Witness = h.Files.Describe(run, dir, p.User), h.Files.DescribeWitness(run)
	}
	if a := in.Spec.Ship.Archive; a != nil && h.Files != nil {
		out.Shipped = h.Files.DescribeArchive(a.Digest)
	}
	return out, nil
}

// mayReserve returns the tasks for this host if the host is fit, understands the spec and allows
// it.
func (h *Host) mayReserve(ctx context.Context, run runkey.Run, in hostapi.ReserveInput) (tasks []spec.Task, l leave, err error) {
	if err := h.reservations.understands(in); err != nil {
		return nil, l, err
	}
	if tasks, err = h.reservations.tasksFor(in); err != nil {
		return nil, l, err
	}
	if err := h.reservations.isFit(ctx); err != nil {
		return nil, l, err
	}
	l, problems := h.gate.admit(run, in, tasks)
	if len(problems) > 0 {
		return nil, l, refusedSpec(problems)
	}
	if p, err := h.plans.get(run); err == nil {
		if err := h.gate.sameSpec(p, l); err != nil {
			return nil, l, err
		}
	}
	return tasks, l, nil
}

// awaitRoom waits until no other execution or generation stands in the run's way.
func (r *reservations) awaitRoom(ctx context.Context, run runkey.Run, in hostapi.ReserveInput, tasks []spec.Task) error {
	if err := r.awaitPredecessor(ctx, run); err != nil {
		return err
	}
	if err := r.endOlder(ctx, run, in); err != nil {
		return err
	}
	if err := r.checkUnused(ctx, run, in.Generation); err != nil {
		return err
	}
	if err := r.stuckOf(ctx, run); err != nil {
		return err
	}
	return r.checkStuck(run, in, tasks)
}

// checkTasks returns an error with everything that keeps tasks from starting on this host.
func (h *Host) checkTasks(run runkey.Run, in hostapi.ReserveInput, tasks []spec.Task, user *hostuser.User) error {
	problems, err := h.checks.checkResources(run, in, tasks)
	if err != nil {
		return err
	}
	if problems = append(h.checks.preflight(run, in.Spec, user, tasks), problems...); len(problems) > 0 {
		return h.reservations.refused(problems)
	}
	return nil
}

// keepPlan claims slots for the tasks and stores the generation's plan. If the plan is new, begin
// completes it.
func (h *Host) keepPlan(run runkey.Run, in hostapi.ReserveInput, tasks []spec.Task, l leave, out hostapi.ReserveOutput, begin func(*plan)) (*plan, error) {
	if h.Slots > 0 {
		h.reservations.claiming.Lock()
		defer h.reservations.claiming.Unlock()
	}
	return h.plans.update(run, func(p *plan) (*plan, error) {
		if p != nil {
			if err := h.gate.sameSpec(p, l); err != nil {
				return nil, err
			}
		}
		switch {
		case p != nil && in.Generation < p.Generation:
			return nil, fmt.Errorf("start %d of the run is over; start %d has begun", in.Generation, p.Generation)
		case p == nil || p.Generation != in.Generation:
			p = h.reservations.newPlan(run, in, p)
			begin(p)
		}
		if err := h.reservations.claimSlots(run, in.Generation, tasks); err != nil {
			return nil, err
		}
		p.Tasks = slices.Clone(p.Tasks)
		for _, t := range tasks {
			if !slices.Contains(p.Tasks, t.Name()) {
				p.Tasks = append(p.Tasks, t.Name())
			}
		}
		if len(in.Tasks) == 0 {
			p.Cluster = wholeCluster(in.Spec, tasks, out)
		}
		return p, nil
	})
}

// isFit returns an error if a check of this host fails. The run can be placed elsewhere.
func (r *reservations) isFit(ctx context.Context) error {
	if r.Checks == nil {
		return nil
	}
	err := r.Checks.Admit(ctx)
	if err == nil {
		return nil
	}
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("host %s: %v", r.Name, err), spec.ErrPlacement,
		temporal.ApplicationErrorOptions{NextRetryDelay: time.Second})
}

// refused returns an error for a spec's problems on this host. If the disk is full, other hosts may
// have space, or this host may have space later.
func (r *reservations) refused(problems []spec.Problem) error {
	if r.Owned || slices.ContainsFunc(problems, func(p spec.Problem) bool { return p.Remedy != makeRoom }) {
		return refusedSpec(problems)
	}
	return temporal.NewApplicationErrorWithOptions(problems[0].Message, spec.ErrPlacement,
		temporal.ApplicationErrorOptions{NextRetryDelay: time.Second})
}

// refusedSpec returns a non-retryable error for a spec.
func refusedSpec(problems []spec.Problem) error {
	err := &spec.InvalidSpecError{Problems: problems}
	return temporal.NewNonRetryableApplicationError(err.Error(), spec.ErrInvalidRunSpec, nil, spec.RunResult{ExitCode: err.ExitCode()})
}

// newPlan returns the plan of a new generation; before is the previous plan on this host, or nil.
func (r *reservations) newPlan(run runkey.Run, in hostapi.ReserveInput, before *plan) *plan {
	p := &plan{
		Notes: taskservices.Notes{Stopping: in.Stopping},
		Run:   run, Generation: in.Generation, Spec: in.Spec, Elapsed: in.Elapsed,
		Devices: in.Devices, LogRoot: r.ships.logRoot(in.Spec), BootID: proc.BootID(), Reserved: r.now(),
	}
	if before != nil {
		oldest := in.Generation - supervisor.KeepProcesses
		p.Stuck = before.stillStuck()
		p.Firsts = maps.Clone(before.Firsts)
		maps.DeleteFunc(p.Firsts, func(generation, _ int) bool { return generation < oldest })
	}
	if in.First > 0 {
		if p.Firsts == nil {
			p.Firsts = map[int]int{}
		}
		p.Firsts[in.Generation] = in.First
	}
	return p
}

func (r *reservations) tasksFor(in hostapi.ReserveInput) ([]spec.Task, error) {
	all := in.Spec.TaskList()
	if len(in.Tasks) == 0 {
		return all, nil
	}
	var tasks []spec.Task
	for _, t := range all {
		if slices.Contains(in.Tasks, t.Name()) {
			tasks = append(tasks, t)
		}
	}
	if len(tasks) != len(in.Tasks) {
		return nil, fmt.Errorf("the run does not have all of the tasks %v", in.Tasks)
	}
	return tasks, nil
}

// claimSlots checks this host's limit on tasks. h.reservations.claiming must be held until the plan
// with the tasks is stored, so that two runs cannot both get the last slots. The run may use slots
// that it held in an earlier generation, perhaps for other ranks. On a host that may be
// oversubscribed, the only run may have any number of tasks; the fleet decides which runs may.
func (r *reservations) claimSlots(run runkey.Run, generation int, tasks []spec.Task) error {
	if r.Slots == 0 {
		return nil
	}
	used, others, want := 0, 0, len(tasks)
	for _, p := range r.plans.all() {
		its, _, _ := p.held(p.Run == run && p.Generation < generation)
		used += its
		if p.Run != run {
			others += its
			continue
		}
		if p.Released || p.Generation < generation {
			continue
		}
		for _, t := range tasks {
			if slices.Contains(p.Tasks, t.Name()) {
				want-- // already reserved: this is a retry
			}
		}
	}
	if used+want <= r.Slots || r.Oversubscribe && others == 0 {
		return nil
	}
	return temporal.NewApplicationErrorWithOptions(
		fmt.Sprintf("host %s has %d of %d slots free, but the run needs %d", r.Name, max(0, r.Slots-used), r.Slots, want),
		spec.ErrPlacement, temporal.ApplicationErrorOptions{NextRetryDelay: time.Second})
}

// leasePorts leases two ports for coordinators, and one port for each task without its own. It
// returns the leased ports and the addresses.
func (r *reservations) leasePorts(ctx context.Context, run runkey.Run, in hostapi.ReserveInput, tasks []spec.Task) ([]int, []string, error) {
	request := supervisor.PortLeaseRequest{Run: run, Generation: in.Generation, Group: in.Group, Count: 2}
	for _, t := range tasks {
		_, port, err := splitAddress(t)
		if err != nil {
			return nil, nil, err
		}
		if port > 0 {
			request.Ports = append(request.Ports, port)
		} else {
			request.Count++
		}
	}
	request.Tasks = len(tasks)
	request.Files = supervisor.FilesFor(request.Tasks, in.Spec.Logs.Dir != spec.NullDir)
	for _, t := range in.Spec.TaskList() {
		if _, port, err := splitAddress(t); err == nil && port > 0 {
			request.Avoid = append(request.Avoid, port)
		}
	}
	reply, err := r.Supervisor.Lease(ctx, request)
	if err != nil {
		return nil, nil, temporal.NewApplicationErrorWithOptions(
			fmt.Sprintf("host %s: %v", r.Name, err), spec.ErrPlacement,
			temporal.ApplicationErrorOptions{
				NextRetryDelay: time.Second,
				// A run with its own host cannot be placed elsewhere.
				NonRetryable: r.Owned && errors.Is(err, supervisor.ErrLimit),
			})
	}
	free := reply.Ports[2:]
	addresses := make([]string, 0, len(tasks))
	for _, t := range tasks {
		host, port, _ := splitAddress(t)
		if port == 0 {
			port, free = free[0], free[1:]
		}
		addresses = append(addresses, r.address(host, port, len(in.Tasks) == 0))
	}
	return reply.Ports, addresses, nil
}

func splitAddress(t spec.Task) (host string, port int, err error) {
	if t.Address == "" {
		return "", 0, nil
	}
	return spec.SplitAddress(t.Address)
}

// wholeCluster returns the cluster of a run whose tasks are all on one host.
func wholeCluster(s *spec.RunSpec, tasks []spec.Task, out hostapi.ReserveOutput) hostapi.Cluster {
	c := newCluster(s)
	c.Hosts = 1
	c.MasterAddr, c.MasterPort, c.JAXPort = spec.HostPart(out.Addresses[0]), out.MasterPort, out.JAXPort
	for i, t := range tasks {
		c.Members = append(c.Members, hostapi.Member{
			Type: t.Type, Index: t.Index, Rank: t.Rank,
			Host: out.Host, Address: out.Addresses[i],
			LocalRank: i, LocalWorldSize: len(tasks),
		})
	}
	return c
}

func newCluster(s *spec.RunSpec) hostapi.Cluster {
	return hostapi.Cluster{RPCLayer: s.RPCLayer, Profiles: s.EnvProfiles}
}

// runOf returns the key of the run that an activity belongs to. The key contains the run's first
// execution, so it is the same for all executions that continue with its tasks. Activities of later
// executions pass the first one as began.
func runOf(ctx context.Context, began string) runkey.Run {
	info := activity.GetInfo(ctx)
	return runkey.Run{
		Namespace:  info.Namespace,
		WorkflowID: info.WorkflowExecution.ID,
		RunID:      cmp.Or(began, info.WorkflowExecution.RunID),
	}
}
