package activities

import (
	"net"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// leaseStore requests a store for torch if the run wants one and rank 0 is here, at the
// MASTER_PORT of the spec or, without one, at a leased port.
func (r *reservations) leaseStore(in hostapi.ReserveInput, tasks []spec.Task, request *supervisor.PortLeaseRequest) {
	if !in.Spec.AgentStore || len(tasks) == 0 || tasks[0].Rank != 0 {
		return
	}
	port := 0
	if v, given := in.Spec.MasterPort(); given {
		port, _ = strconv.Atoi(v.Value) // validated
		request.Ports, request.Tasks = append(request.Ports, port), append(request.Tasks, "the agent's store")
	}
	// If all tasks are on one host, the loopback interface suffices, unless the spec sets
	// another address.
	master := tasks[0].Env["MASTER_ADDR"].Value
	if master == "" {
		host, _, _ := splitAddress(tasks[0])
		master = spec.HostPart(r.address(host, 1, len(in.Tasks) == 0))
	}
	host := ""
	switch master = strings.Trim(master, "[]"); {
	case strings.EqualFold(master, "localhost"):
		host = loopback
	case spec.IsLoopback(master):
		host = master
	}
	request.Store = net.JoinHostPort(host, strconv.Itoa(port))
}
