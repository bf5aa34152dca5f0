package activities

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// reachTakes bounds one attempt to reach the host of rank 0.
const reachTakes = 5 * time.Second

// reachMaster returns an error if tasks here would wait for rank 0 at an address that does
// not lead to its host. Nothing listens at the port before rank 0 does, so a refused
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
	return fmt.Errorf("host %s cannot reach %s, which has rank 0, by its address %s (MASTER_ADDR): %w; connect their networks, "+
		"give the host worker on %s an address that others reach with --advertise, or leave torch out of env_profiles",
		h.Name, master.Host, c.MasterAddr, err, master.Host)
}
