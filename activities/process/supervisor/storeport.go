package supervisor

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/tcpstore"
)

// store is a store for the processes of one lease of a run. The supervisor serves it, because
// it lives as long as the processes do.
type store struct {
	of      portLeaseKey
	address string
	server  *tcpstore.Server
}

// storeAddress returns the address of a store; empty if there is none.
func storeAddress(wanted string, anyPorts []int) (string, error) {
	host, port, err := net.SplitHostPort(wanted)
	switch {
	case wanted == "":
		return "", nil
	case err != nil || port == "0" && len(anyPorts) == 0:
		return "", refuse(ErrInvalid, fmt.Sprintf("a store cannot be served at %q", wanted))
	case port == "0":
		return net.JoinHostPort(host, strconv.Itoa(anyPorts[0])), nil
	}
	return wanted, nil
}

// serveStore serves the store of a lease, if it has one and does not serve it yet. The port
// must be held, and the ports of the run be locked.
func (s *supervisor) serveStore(run *run, key portLeaseKey, address string) error {
	if address == "" {
		return nil
	}
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	if old, served := run.ports.stores[port]; served && old.of == key && old.address == address {
		return nil
	}
	run.ports.endStores([]int{port})
	server, err := tcpstore.Listen(address, s.log.With(zap.String("run", run.key.WorkflowID)))
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return refuse(ErrPortTaken, fmt.Sprintf("port %d is taken: %s", port, reasonOf(err)))
	case err != nil:
		return notProbed(port, err)
	}
	if run.ports.stores == nil {
		run.ports.stores = make(map[int]store)
	}
	run.ports.stores[port] = store{key, address, server}
	return nil
}

// endStores ends the stores at the given ports, or all if ports is nil.
func (p *runPorts) endStores(ports []int) {
	for port, store := range p.stores {
		if ports == nil || slices.Contains(ports, port) {
			store.server.Close()
			delete(p.stores, port)
		}
	}
}
