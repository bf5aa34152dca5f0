package torchrun

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// A Meeting describes where one run's agents meet. Each agent was started by its own command
// line.
type Meeting struct {
	// Host and Port are the endpoint, which is on the head.
	Host string
	Port int
	// ID identifies the run.
	ID string
	// Rank is this agent's place among the agents, or -1 for any.
	Rank int
	// Head reports whether this agent is at the endpoint. It is nil if the address decides
	// that.
	Head *bool
	// Least and Most limit the number of agents.
	Least, Most int
	// Timeout limits how long the agents wait for each other.
	Timeout time.Duration
	// TokenFile is the file with the agents' secret, or empty if none was given.
	TokenFile string
	// Address is this host's address for other hosts. If it is empty, this host's address on its
	// connection to the endpoint is used.
	Address string
	// Own lists variables for the processes on this host only.
	Own []string
}

// Hosts returns the number of agents as a spec's number of hosts.
func (m *Meeting) Hosts() string {
	if m.Least == m.Most {
		return strconv.Itoa(m.Most)
	}
	return fmt.Sprintf("%d:%d", m.Least, m.Most)
}

// Endpoint returns the endpoint's address.
func (m *Meeting) Endpoint() string { return net.JoinHostPort(m.Host, strconv.Itoa(m.Port)) }

// The default ports of endpoints, like torchrun's.
const (
	staticPort  = 29500
	dynamicPort = 29400
)

// meets reports whether other agents join, which is the case if the command line sets a meeting
// point.
func (t *translation) meets(least, most, rank int) bool {
	backend := t.text("rdzv-backend", "static")
	switch {
	case most == 1 || t.has("standalone") || backend != "static" && backend != "c10d":
		return false
	case t.meetingHost() == "":
		return rank > 0 || t.has("node-rank") && least > 1
	case backend == "c10d":
		_, port, err := net.SplitHostPort(t.text("rdzv-endpoint", ""))
		return least > 1 || err != nil || port != "0" // agents cannot find a port that was not chosen
	}
	return least > 1 || rank > 0 || t.elsewhere()
}

// meet sets where the agents meet, and how long they wait.
func (t *translation) meet(least, most, rank int) (err error) {
	m := &Meeting{Host: t.meetingHost(), ID: t.text("rdzv-id", "none"), Rank: -1, Least: least, Most: most, Address: t.text("local-addr", "")}
	from, port := t.values["rdzv-endpoint"], ""
	if from.text != "" {
		if _, p, err := net.SplitHostPort(from.text); err == nil {
			port = p
		}
	}
	if t.text("rdzv-backend", "static") == "static" {
		m.Port = staticPort
		if t.has("node-rank") {
			m.Rank, m.Head = rank, new(rank == 0)
		}
		if from.text == "" {
			from, port = t.values["master-port"], t.text("master-port", "")
		}
		m.Host = cmp.Or(m.Host, "127.0.0.1")
	} else {
		m.Port = dynamicPort
	}
	if port != "" {
		if !isPort(port) {
			return fmt.Errorf("%s: use a port from 1 to 65535, at which the agents meet", from.from)
		}
		m.Port, _ = strconv.Atoi(port)
	}
	if m.Rank >= most {
		return fmt.Errorf("%s: with %d hosts, use 0 to %d", t.values["node-rank"].from, most, most-1)
	}
	if err := t.conf(m); err != nil {
		return err
	}
	t.launch.Meeting = m
	return nil
}

// torchrun's times.
const (
	joinTimeout     = 600 * time.Second
	lastCallTimeout = 30 * time.Second
)

// stopAfter is how long processes continue without the head. The other agents restart without
// this host once none of its processes can be alive.
const stopAfter = "30s"

// conf parses --rdzv-conf. It ignores unneeded keys.
func (t *translation) conf(m *Meeting) error {
	m.Timeout = joinTimeout
	lastCall := lastCallTimeout
	join := "join_timeout" // c10d's, which ignores timeout
	if t.text("rdzv-backend", "static") == "static" {
		join = "timeout"
	}
	v := t.values["rdzv-conf"]
	for pair := range strings.SplitSeq(unquoted(v.text), ",") {
		key, text, _ := strings.Cut(pair, "=")
		text = strings.TrimSpace(text)
		var err error
		switch strings.TrimSpace(key) {
		case "token_file":
			m.TokenFile = text
		case join:
			m.Timeout, err = seconds(text)
		case "last_call_timeout":
			lastCall, err = seconds(text)
		case "is_host":
			var is bool
			if is, err = strconv.ParseBool(strings.ToLower(text)); err == nil {
				m.Head = &is
			} else {
				err = errors.New("use true or false")
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", v.from, strings.TrimSpace(key), err)
		}
	}
	t.add("--set", "placement_timeout="+m.Timeout.String(), "--on-disconnect", stopAfter)
	if m.Least < m.Most {
		t.add("--set", "elastic.join_wait="+lastCall.String(), "--set", "elastic.grow=next-generation")
	}
	return nil
}

// unquoted returns text without enclosing quotes. If no shell removes them, as in service unit
// files, torchrun ignores them.
func unquoted(text string) string {
	for _, quote := range []string{"'", `"`} {
		if inner, ok := strings.CutPrefix(text, quote); ok && strings.HasSuffix(inner, quote) {
			return strings.TrimSuffix(inner, quote)
		}
	}
	return text
}

func seconds(text string) (time.Duration, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 365*24*3600 {
		return 0, errors.New("use a whole number of seconds")
	}
	return time.Duration(n) * time.Second, nil
}
