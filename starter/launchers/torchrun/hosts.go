package torchrun

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/shellword"
)

// hosts sets the number of hosts, and where their agents meet. If several hosts are requested
// without a meeting place, it fails with the commands that use several hosts.
func (t *translation) hosts() error {
	v, ok := t.values["nnodes"]
	if !ok {
		v = value{"1", "--nnodes 1"}
	}
	low, high, isRange := strings.Cut(v.text, ":")
	if !isRange {
		high = low
	}
	least, err1 := strconv.Atoi(low)
	most, err2 := strconv.Atoi(high)
	if err1 != nil || err2 != nil || least < 1 || least > most {
		return fmt.Errorf("%s: use a number of hosts, such as 1, or MIN:MAX, such as 1:4", v.from)
	}
	rank, err := t.number("node-rank", 0)
	if err != nil {
		return err
	}
	switch {
	case t.meets(least, most, rank):
		return t.meet(least, most, rank)
	case least > 1 || most > 1 && (rank > 0 || t.elsewhere()):
		why := v.from + ": there is no endpoint at which the agents can meet"
		if backend := t.text("rdzv-backend", "static"); backend != "static" && backend != "c10d" {
			why = fmt.Sprintf("%s: agents meet by c10d or static, without a service like %s", t.values["rdzv-backend"].from, backend)
		}
		return fmt.Errorf("%s; on each of them, run\n%s\nor start the run once, on one of them:\n%s",
			why, t.onEach(v.text), t.onHosts(least, most))
	case rank > 0:
		return fmt.Errorf("%s: with one host there is only 0; omit it", t.values["node-rank"].from)
	case most > 1:
		t.note("%s: this host runs alone; on other hosts, start separate runs", v.from)
	}
	return nil
}

// elsewhere reports whether agents on other hosts could join.
func (t *translation) elsewhere() bool {
	if t.has("standalone") {
		return false
	}
	host := t.meetingHost()
	if host == "" || host == "localhost" {
		return false
	}
	ip := net.ParseIP(host)
	return ip == nil || !ip.IsLoopback()
}

// meetingHost returns the agents' meeting host, or "" if none was given.
func (t *translation) meetingHost() string {
	host := t.text("rdzv-endpoint", "")
	if host == "" {
		host = t.text("master-addr", "")
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.Trim(host, "[]")
}

// onEach returns the command for agents that meet.
func (t *translation) onEach(nodes string) string {
	return fmt.Sprintf("clusterrun torchrun --nnodes %s --rdzv-backend c10d --rdzv-endpoint HOST1:%d ...    # and your other arguments; HOST1 is one of the hosts", nodes, dynamicPort)
}

// onHosts returns the commands for the same run on several hosts.
func (t *translation) onHosts(least, most int) string {
	each := t.text("nproc-per-node", "1")
	var flags []string
	if n, _ := t.number("max-restarts", 0); n > 0 {
		flags = append(flags, "--max-restarts", strconv.Itoa(n))
	}
	for _, name := range []string{"redirects", "tee", "log-dir", "local-ranks-filter"} {
		if text := t.text(name, ""); text != "" {
			flags = append(flags, "--"+name, text)
		}
	}
	rest := shellword.Join(append(append(flags, "--"), t.launch.Command...))
	count := strconv.Itoa(most)
	var commands []string
	if least == most {
		var hosts []string
		for i := range min(most, 4) {
			hosts = append(hosts, fmt.Sprintf("HOST%d", i+1))
		}
		if host := t.meetingHost(); t.elsewhere() {
			hosts[0] = host
		}
		if most > len(hosts) {
			hosts = append(hosts, "...")
		}
		commands = append(commands, fmt.Sprintf("clusterrun run -H %s --nproc-per-node %s %s    # over ssh", strings.Join(hosts, ","), each, rest))
	} else {
		count = fmt.Sprintf("%d:%d", least, most)
	}
	if _, err := strconv.Atoi(each); err != nil {
		each = "NUMBER"
	}
	commands = append(commands, fmt.Sprintf("clusterrun submit --nnodes %s --nproc-per-node %s %s    # with `clusterrun worker` on each host", count, each, rest))
	return strings.Join(commands, "\n")
}
