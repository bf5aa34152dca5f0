package torchrun

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// hosts sets the number of hosts, and where their agents meet. If several hosts are requested
// without a meeting place, it fails.
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
		return fmt.Errorf("%s; on each host, add --rdzv-backend c10d --rdzv-endpoint HOST1:%d with the name of one of them, or start the run once with `clusterrun run -H HOST1,HOST2,...`, which reaches hosts over ssh",
			why, dynamicPort)
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
