package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// members holds a run's agents, including the head.
type members struct {
	own  Request // the head's
	most int
	// executionID is the run's execution ID. It is empty until the run has started.
	executionID string
	// all maps host worker names to members.
	all map[string]*member
}

// member is an agent that has joined.
type member struct {
	agent string // from its request
	rank  int
	// cut closes its connection.
	cut func()
}

func newMembers(own Request, most int) (*members, string) {
	m := &members{own: own, most: most, all: map[string]*member{}}
	return m, m.add(own, &member{cut: func() {}})
}

// check returns an answer that refuses an agent that may not join, and otherwise the zero
// Answer.
func (m *members) check(r Request) Answer {
	here, again, had := m.own, r.ExecutionID != "", m.had(r)
	refuse := func(format string, args ...any) Answer { return Answer{Refusal: fmt.Sprintf(format, args...)} }
	switch {
	case r.Version != here.Version:
		return refuse("its clusterrun is %s, this one is %s; install the same version", r.Version, here.Version)
	case r.ID != here.ID:
		return refuse("--rdzv-id is %q instead of %q, which this run has; use a separate endpoint for each run", r.ID, here.ID)
	case r.Encoded != here.Encoded:
		return refuse("only one of the agents has --codec-keys; use the same keys for all of them")
	case again && r.ExecutionID != m.executionID:
		return refuse("it belongs to another run")
	case had != nil && had.agent == r.Agent:
		return Answer{}
	case had != nil:
		return refuse("another agent has replaced this agent")
	}
	if difference := different(r.Spec, here.Spec); difference != "" && !again {
		return refuse("%s; use the same for all agents", difference)
	}
	for host, other := range m.all {
		if other.rank == r.Rank && r.Rank >= 0 {
			a := refuse("--node-rank %d is already used by host %s; use different ones", r.Rank, host)
			a.Taken = true
			return a
		}
	}
	if len(m.all) >= m.most {
		a := refuse("the run already has all of its %d agents", m.most)
		a.Later = true
		return a
	}
	return Answer{}
}

// had returns the member with the place that a rejoining agent claims, or nil.
func (m *members) had(r Request) *member {
	if r.ExecutionID == "" {
		return nil
	}
	return m.all[r.Host]
}

// add adds an agent to the members, and returns the name of its host worker. The names of agents
// with ranks sort by rank. An agent that rejoins gets its previous place.
func (m *members) add(r Request, one *member) string {
	one.agent, one.rank = r.Agent, r.Rank
	if had := m.had(r); had != nil {
		had.cut()
		m.all[r.Host] = one
		return r.Host
	}
	name := r.Host
	if r.Rank >= 0 && r.ExecutionID == "" {
		name = fmt.Sprintf("%0*d-%s", len(strconv.Itoa(m.most-1)), r.Rank, r.Host)
	}
	unique := name
	for n := 2; ; n++ {
		if m.all[unique] == nil {
			m.all[unique] = one
			return unique
		}
		unique = fmt.Sprintf("%s.%d", name, n)
	}
}

// words maps spec fields to their names on a torchrun command line.
var words = map[string]string{
	"command":      "the script and its arguments",
	"dir":          "the current directory",
	"hosts":        "--nnodes, or --nproc-per-node",
	"tasks":        "--nproc-per-node, or --role",
	"max_restarts": "--max-restarts",
}

// maxValue limits how much of a value is shown.
const maxValue = 200

// own lists the spec fields that may differ, which are variables and how long an agent waits.
var own = []string{"env", "placement_timeout", "elastic"}

// different describes a field that differs between two specs but must not, or returns "".
func different(theirs, ours map[string]json.RawMessage) string {
	all := maps.Clone(ours)
	maps.Copy(all, theirs)
	maps.DeleteFunc(all, func(field string, _ json.RawMessage) bool { return slices.Contains(own, field) })
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if a, b := theirs[field], ours[field]; !bytes.Equal(a, b) {
			what := cmp.Or(words[field], field)
			return fmt.Sprintf("%s: %s here, and at the endpoint %s", what, value(a), value(b))
		}
	}
	return ""
}

func value(text json.RawMessage) string {
	var list []string
	switch {
	case len(text) == 0:
		return "none"
	case json.Unmarshal(text, &list) == nil:
		return shorten.Text(strings.Join(list, " "), maxValue)
	}
	return shorten.Text(string(text), maxValue)
}
