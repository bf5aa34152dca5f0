package activities

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// CheckStart checks whether a task can be started on this host.
func (h *Host) CheckStart(ctx context.Context, in hostapi.CheckStartInput) (none hostapi.None, err error) {
	p, err := h.planOf(ctx, in.Group)
	switch {
	case err != nil:
		return none, err
	case p == nil:
		return none, h.checks.cannotStart(spec.Problem{
			Path: "task", Message: fmt.Sprintf("host %s no longer has this run", h.Name), Remedy: "try again after the run has been placed again",
		})
	}
	return none, h.checks.checkStart(p, in.Task)
}

// addedTask is a task that was started outside the spec, or with a command other than the
// spec's.
type addedTask struct {
	Task spec.Task `json:"task"`
	// Signers are the principals of the key that signed it.
	Signers []string `json:"signers,omitempty"`
	// Launch is defined by [hostapi.RunTaskInput].
	Launch int `json:"launch,omitempty"`
	// Member is set if the task is not in the cluster.
	Member *hostapi.Member `json:"member,omitempty"`
}

// groupOfAdded returns an added task's port lease group. Groups of a reservation count from 0.
func groupOfAdded(rank int) int { return -1 - rank }

// addTask adds a task that is outside the spec to the plan.
func (h *Host) addTask(ctx context.Context, run runkey.Run, in hostapi.RunTaskInput) error {
	t := *in.Added
	p, err := h.plans.get(run)
	if err != nil {
		return err
	}
	signers, err := h.gate.admitAdded(p, in)
	if err != nil {
		return err
	}
	added := addedTask{Task: t, Signers: signers, Launch: in.Launch}
	if !slices.ContainsFunc(p.Cluster.Members, func(m hostapi.Member) bool {
		return m.Type == t.Type && m.Index == t.Index
	}) {
		lease, err := h.Supervisor.Lease(ctx, supervisor.PortLeaseRequest{
			Run: run, Generation: p.Generation, Group: groupOfAdded(t.Rank), Count: 1,
		})
		if err != nil {
			return err
		}
		size := len(p.Cluster.Members)
		added.Member = &hostapi.Member{
			Type: t.Type, Index: t.Index, Rank: t.Rank, Host: h.Name,
			Address:   h.reservations.address("", lease.Ports[0], p.Cluster.Hosts == 1),
			LocalRank: size, LocalWorldSize: size + 1,
		}
	}
	_, err = h.plans.change(run, func(p *plan) error {
		p.Added = maps.Clone(p.Added)
		if p.Added == nil {
			p.Added = map[string]addedTask{}
		}
		p.Added[t.Name()] = added
		return nil
	})
	return err
}

// slots returns the number of slots that the run's tasks occupy on this host.
func (p *plan) slots() int { return len(p.Tasks) + len(p.Added) }

// clusterFor returns the cluster as a task sees it. Only a task outside the spec sees itself in it;
// other tasks keep the cluster they were started with.
func (p *plan) clusterFor(task string) *hostapi.Cluster {
	c := p.Cluster
	if a, ok := p.Added[task]; ok && a.Member != nil {
		c.Members = append(slices.Clone(c.Members), *a.Member)
	}
	return &c
}
