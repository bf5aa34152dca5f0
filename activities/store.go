package activities

import (
	"net"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// leaseStore asks for a store for torch where the run wants one and rank 0 is here: at the
// MASTER_PORT that the spec gives it, else at the one that is leased.
func (h *Host) leaseStore(in ReserveInput, tasks []spec.Task, request *supervisor.PortLeaseRequest) {
	if !in.Spec.AgentStore || len(tasks) == 0 || tasks[0].Rank != 0 {
		return
	}
	port := 0
	if v, given := in.Spec.MasterPort(); given {
		port, _ = strconv.Atoi(v.Value) // validated
		request.Ports, request.Tasks = append(request.Ports, port), append(request.Tasks, "the agent's store")
	}
	// Where all tasks are on one host, its loopback interface will do, unless they are told
	// another address.
	master := tasks[0].Env["MASTER_ADDR"].Value
	if master == "" {
		host, _, _ := splitAddress(tasks[0])
		master = HostPart(h.address(host, 1, len(in.Tasks) == 0))
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
