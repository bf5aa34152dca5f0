package devserver

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// ports are one server's ports. Even within one process, Temporal's services talk to each other
// over loopback, each on its own port.
type ports struct {
	frontend, history, matching, worker int
	ui                                  int // 0 without a Web UI
}

// choosePorts checks before anything is started that the requested ports are free, and picks the
// rest. The server's libraries open their listeners themselves and exit if that fails, so a taken
// port must become a clear error here.
func choosePorts(o Options) (ports, error) {
	var p ports
	wanted := []struct {
		flag string
		port *int
	}{
		{"--port", &p.frontend},
		{"--ui-port", &p.ui},
		{"", &p.history},
		{"", &p.matching},
		{"", &p.worker},
	}
	p.frontend, p.ui = o.Port, o.UIPort

	var taken []error // report all of them, so that they can be corrected in a single try
	for _, w := range wanted {
		if w.port == &p.ui && o.Headless {
			p.ui = 0
			continue
		}
		// Hold each port until all are chosen, so that none is chosen twice.
		l, err := net.Listen("tcp", address(o.IP, *w.port))
		if err != nil {
			taken = append(taken, portError(cmp.Or(w.flag, "an internal port"), address(o.IP, *w.port), anotherPort, err))
			continue
		}
		defer l.Close()
		*w.port = l.Addr().(*net.TCPAddr).Port
		if err := keepFromOthers(l); err != nil {
			return ports{}, err
		}
	}
	if len(taken) > 0 {
		return ports{}, errors.Join(taken...)
	}
	return p, nil
}

// anotherPort is the remedy for a flag that takes 0 for any free port.
const anotherPort = "choose another port, or 0 for any free one"

// portError explains why it is impossible to listen on an address. remedy is the advice if the port
// is in use.
func portError(flag, address, remedy string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s: %s is in use by another program; %s", flag, address, remedy)
	}
	return fmt.Errorf("%s: %s: %w", flag, address, err)
}

// keepFromOthers leaves a connection of the listener's port in TIME_WAIT. The kernel then does not
// assign the port to processes that request any free port, but this process may still bind it. So
// no other server can choose the same port before this one listens on it.
func keepFromOthers(l net.Listener) error {
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return fmt.Errorf("reserving %s: %w", l.Addr(), err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		return fmt.Errorf("reserving %s: %w", l.Addr(), err)
	}
	// The side that closes first enters TIME_WAIT.
	return server.Close()
}
