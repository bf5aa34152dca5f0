package torchrun

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// addresses sets the processes' meeting address, if given.
func (t *translation) addresses() error {
	if t.launch.Meeting != nil {
		return nil // the run leases a port on rank 0's host
	}
	t.useless = append(t.useless, "rdzv-backend", "rdzv-conf")
	static := t.text("rdzv-backend", "static") == "static" && !t.has("standalone")
	endpoint := t.values["rdzv-endpoint"]
	if static && endpoint.text != "" {
		host, port, err := net.SplitHostPort(endpoint.text)
		if err != nil || !isPort(port) {
			return fmt.Errorf("%s: the static backend needs HOST:PORT", endpoint.from)
		}
		t.useless = append(t.useless, "master-addr", "master-port", "local-addr")
		t.setenv("MASTER_ADDR", host)
		t.setenv("MASTER_PORT", port)
		return nil
	}
	t.useless = append(t.useless, "rdzv-endpoint")
	if !static {
		t.useless = append(t.useless, "master-addr", "master-port")
		if address := t.text("local-addr", ""); address != "" {
			t.setenv("MASTER_ADDR", address)
		}
		return nil
	}
	t.useless = append(t.useless, "local-addr")
	if address := t.text("master-addr", ""); address != "" {
		t.setenv("MASTER_ADDR", strings.Trim(address, "[]"))
	}
	if v, ok := t.values["master-port"]; ok {
		if !isPort(v.text) {
			return fmt.Errorf("%s: use a port from 1 to 65535", v.from)
		}
		t.setenv("MASTER_PORT", v.text)
	}
	return nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}
