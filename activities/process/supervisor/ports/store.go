package ports

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/tcpstore"
)

// store is a store for the processes of one lease of a run. The supervisor serves it, because
// it lives as long as the processes do.
type store struct {
	of      leaseKey
	address string
	server  *tcpstore.Server
}

// storeAddress returns the address of a store, or empty if there is none.
func storeAddress(wanted string, anyPorts []int) (string, error) {
	host, port, err := net.SplitHostPort(wanted)
	switch {
	case wanted == "":
		return "", nil
	case err != nil || port == "0" && len(anyPorts) == 0:
		return "", fault.Refuse(fault.ErrInvalid, fmt.Sprintf("a store cannot be served at %q", wanted))
	case port == "0":
		return net.JoinHostPort(host, strconv.Itoa(anyPorts[0])), nil
	}
	return wanted, nil
}

// serveStore serves the store of a lease, if it has one that is not served yet. The port must
// be held, and p.mu must be held.
func (p *Ports) serveStore(key leaseKey, address string, log *zap.Logger) error {
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
	if old, served := p.stores[port]; served && old.of == key && old.address == address {
		return nil
	}
	p.endStores([]int{port})
	server, err := tcpstore.Listen(address, log)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fault.Refuse(fault.ErrPortTaken, fmt.Sprintf("port %d is taken: %s", port, fault.Reason(err)))
	case err != nil:
		return notProbed(port, err)
	}
	if p.stores == nil {
		p.stores = make(map[int]store)
	}
	p.stores[port] = store{key, address, server}
	return nil
}

// endStores ends the stores at the given ports, or all if ports is nil.
func (p *Ports) endStores(ports []int) {
	for port, store := range p.stores {
		if ports == nil || slices.Contains(ports, port) {
			store.server.Close()
			delete(p.stores, port)
		}
	}
}
