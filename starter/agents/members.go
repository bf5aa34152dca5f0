package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/shorten"
)

// members are the agents of a run, the head among them.
type members struct {
	own  Request // of the head
	most int
	// all are by the names of their host workers.
	all map[string]*member
}

// member is an agent that takes part.
type member struct {
	rank int
	// cut ends its connection.
	cut func()
}

func newMembers(own Request, most int) (*members, string) {
	m := &members{own: own, most: most, all: map[string]*member{}}
	return m, m.add(own, &member{cut: func() {}})
}

// check returns why an agent does not take part, and whether that is because there are enough
// others. Neither: it may.
func (m *members) check(r Request) (refusal string, full bool) {
	here := m.own
	switch {
	case r.Version != here.Version:
		return fmt.Sprintf("its program is %s, and the one here is %s; install the same", r.Version, here.Version), false
	case r.ID != here.ID:
		return fmt.Sprintf("--rdzv-id is %q, and that of the run here is %q; give each run an endpoint of its own", r.ID, here.ID), false
	case r.Encoded != here.Encoded:
		return "--codec-keys is given for one of the agents and not for the other; give all of them the same keys", false
	case r.Again && m.all[r.Host] != nil:
		return "", false
	case r.Again:
		return "", len(m.all) >= m.most
	}
	if difference := different(r.Spec, here.Spec); difference != "" {
		return difference + "; give all agents the same", false
	}
	for host, other := range m.all {
		if other.rank == r.Rank && r.Rank >= 0 {
			return fmt.Sprintf("--node-rank %d is that of host %s already; give each agent another", r.Rank, host), false
		}
	}
	return "", len(m.all) >= m.most
}

// add takes an agent among the members, and returns the name of its host worker. The names of
// ranks are in their order. One that comes again takes the place that it had.
func (m *members) add(r Request, one *member) string {
	one.rank = r.Rank
	if had := m.all[r.Host]; r.Again && had != nil {
		had.cut()
		m.all[r.Host] = one
		return r.Host
	}
	name := r.Host
	if r.Rank >= 0 && !r.Again {
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

// words are what fields of a spec are called on a command line of torchrun.
var words = map[string]string{
	"command":      "the script and its arguments",
	"dir":          "the current directory",
	"hosts":        "--nnodes, or --nproc-per-node",
	"tasks":        "--nproc-per-node, or --role",
	"max_restarts": "--max-restarts",
}

// maxValue bounds how much is shown of a value.
const maxValue = 200

// own are the fields of a spec that may differ: variables, and how long an agent waits.
var own = []string{"env", "placement_timeout", "elastic"}

// different names a field in which two specs differ that may not.
func different(theirs, ours map[string]json.RawMessage) string {
	all := maps.Clone(ours)
	maps.Copy(all, theirs)
	maps.DeleteFunc(all, func(field string, _ json.RawMessage) bool { return slices.Contains(own, field) })
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if a, b := theirs[field], ours[field]; !bytes.Equal(a, b) {
			what := words[field]
			if what == "" {
				what = field
			}
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
