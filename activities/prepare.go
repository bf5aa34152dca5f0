package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// witnessTakes limits how long a run's other hosts may take to answer.
const witnessTakes = 3 * time.Second

// Prepare stores the cluster in the plan once rank 0's host can be reached.
func (h *Host) Prepare(ctx context.Context, in hostapi.PrepareInput) (out hostapi.PrepareOutput, err error) {
	p, err := h.plans.get(runOf(ctx, in.Run))
	if at := in.SharedCluster; at != nil && err == nil {
		err = h.Server.ReadShared(ctx, *at, &in.Cluster)
	}
	if err == nil {
		err = h.gate.checkCluster(p, in.Cluster)
	}
	if err != nil {
		return out, err
	}
	if err := h.reachMaster(ctx, &in.Cluster); err != nil {
		return out, err
	}
	if len(in.Witnesses) > 0 {
		asking, cancel := context.WithTimeout(ctx, witnessTakes)
		defer cancel()
		out.Reaches = h.witnesses.Reaches(asking, p.Run, in.Witnesses)
	}
	_, err = h.plans.change(runOf(ctx, in.Run), func(p *plan) error {
		if in.Generation != p.Generation {
			return fmt.Errorf("start %d of the run is not assigned to this host; start %d is", in.Generation, p.Generation)
		}
		p.Cluster, p.Witnesses = in.Cluster, in.Witnesses
		return nil
	})
	return out, err
}

// Deny promises that this host extends no more leases of tasks on another host of the run.
func (h *Host) Deny(ctx context.Context, in hostapi.DenyInput) (out hostapi.DenyOutput, err error) {
	run := runOf(ctx, in.Run)
	h.gate.noted(run, "deny")
	out.Quiet, err = h.witnesses.Deny(run, in.Generation, in.Tasks, in.Offer, func() error {
		_, err := h.plans.change(run, func(p *plan) error {
			switch {
			case p.Generation < in.Generation:
				return fmt.Errorf("start %d of the run is not assigned to this host; start %d is", in.Generation, p.Generation)
			case p.Generation > in.Generation:
				return nil // this host answers only for the later generation
			}
			denied := maps.Clone(p.Denied)
			if denied == nil {
				denied = map[string]int64{}
			}
			for _, task := range in.Tasks {
				denied[task] = max(denied[task], in.Offer)
			}
			p.Denied = denied
			return nil
		})
		return err
	})
	return out, err
}

// Answer only answers.
func (h *Host) Answer(context.Context) (none hostapi.None, err error) { return none, nil }

// address returns a task's address for other tasks. If all tasks are on one host, they use the
// loopback interface unless the spec overrides it; a loopback address is never given to another
// host.
func (r *reservations) address(pinned string, port int, alone bool) string {
	host := pinned
	switch {
	case pinned == "" && alone:
		host = loopback
	case pinned == "", pinned == r.Name, !alone && spec.IsLoopback(pinned):
		host = cmp.Or(r.Advertise, r.Name)
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// reachTakes limits one attempt to reach rank 0's host.
const reachTakes = 5 * time.Second

// reachMaster returns an error if tasks on this host would wait for rank 0 at an address that does
// not lead to rank 0's host. Before rank 0 starts, nothing listens at the port, so a refused
// connection counts as reached.
func (h *Host) reachMaster(ctx context.Context, c *hostapi.Cluster) error {
	master := c.Members[0]
	if master.Host == h.Name || !slices.Contains(c.Profiles, spec.EnvTorch) {
		return nil
	}
	dialer := net.Dialer{Timeout: reachTakes}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(c.MasterAddr, strconv.Itoa(c.MasterPort)))
	switch {
	case err == nil:
		return conn.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil
	}
	return fmt.Errorf("host %s cannot reach %s, which has rank 0, at its address %s (MASTER_ADDR): %w; connect their networks, start the host worker on %s with an --advertise address that other hosts can reach, or remove torch from env_profiles",
		h.Name, master.Host, c.MasterAddr, err, master.Host)
}
