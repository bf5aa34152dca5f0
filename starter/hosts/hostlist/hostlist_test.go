package hostlist

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestParse(t *testing.T) {
	hosts := must.Get(Parse("a:4, b,ann@c:1"))(t)
	assert.Equal(t, []Host{
		{Name: "a", Login: "a", Slots: 4}, {Name: "b", Login: "b", Slots: 1, Implied: true}, {Name: "c", Login: "ann@c", Slots: 1},
	}, hosts)
	for _, bad := range []string{"", "a,,b", ":4", "a:0", "a:-1", "a:many", "-oProxyCommand=x", "ann@", "a,-b:2"} {
		_, err := Parse(bad)
		assert.ErrorContains(t, err, ";", "%q has no remedy", bad)
	}
}

func TestParseFile(t *testing.T) {
	hosts := must.Get(ParseFile(strings.NewReader("# hosts\na slots=4 max_slots=8\n\nb:2 # MPICH\nann@c\n")))(t)
	assert.Equal(t, []Host{
		{Name: "a", Login: "a", Slots: 4}, {Name: "b", Login: "b", Slots: 2}, {Name: "c", Login: "ann@c", Implied: true},
	}, hosts)
	for text, want := range map[string]string{
		"":              "it does not name any hosts",
		"# nothing\n":   "it does not name any hosts",
		"a slots=x":     `line 1: "x" is not a number of slots`,
		"a\nb sluts=1":  `line 2: cannot parse "sluts=1"`,
		"a\n\n:3":       "line 3: a host name is empty",
		"a slots=4 b:2": "cannot parse",
		"a\n-x slots=2": `line 2: "-x" is not a host name`,
	} {
		_, err := ParseFile(strings.NewReader(text))
		assert.ErrorContains(t, err, want, "%q", text)
	}
}

func TestMerge(t *testing.T) {
	hosts := must.Get(Parse("localhost:2,b,a:3,b,own:1"))(t)
	hosts = Merge(hosts, "own", func(name string) bool { return name == "localhost" || name == "own" })
	assert.Equal(t, []Host{
		{Name: "own", Login: "localhost", Slots: 3, Here: true},
		{Name: "b", Login: "b", Slots: 2, Implied: true},
		{Name: "a", Login: "a", Slots: 3},
	}, hosts)
	n, known := Slots(hosts)
	assert.Equal(t, 8, n)
	assert.True(t, known)
	assert.True(t, Elsewhere(hosts))
	assert.False(t, Elsewhere(hosts[:1]))

	hosts = must.Get(ParseFile(strings.NewReader("a\na\n")))(t)
	hosts = Merge(hosts, "own", func(string) bool { return false })
	_, known = Slots(hosts)
	assert.False(t, known, "the host has not said how many it has")
}

func TestLimit(t *testing.T) {
	given, implied := Host{Name: "a", Slots: 2}, Host{Name: "a", Slots: 1, Implied: true}
	for _, h := range []Host{implied, given} {
		h := must.Get(Limit(h, 2))(t)
		assert.Equal(t, 2, h.Slots)
	}
	_, err := Limit(given, 3)
	assert.EqualError(t, err, "3 tasks on host a need as many slots, but it has 2; increase its slots")
}

func TestFill(t *testing.T) {
	count := func(n int) *int { return &n }
	group := func(typ string, n int) spec.TaskGroup { return spec.TaskGroup{Type: typ, Count: count(n)} }
	at := func(typ string, addresses ...string) spec.TaskGroup {
		return spec.TaskGroup{Type: typ, Addresses: addresses}
	}
	for name, c := range map[string]struct {
		hosts   string
		groups  []spec.TaskGroup
		deal    bool
		want    string // hosts in rank order
		problem string
	}{
		"by slot":                {hosts: "a:2,b:2", groups: []spec.TaskGroup{group("w", 4)}, want: "a a b b"},
		"fewer than slots":       {hosts: "a:2,b:2", groups: []spec.TaskGroup{group("w", 3)}, want: "a a b"},
		"several types":          {hosts: "a:1,b:3", groups: []spec.TaskGroup{group("chief", 1), group("w", 3)}, want: "a b b b"},
		"one without a count":    {hosts: "a,b", groups: []spec.TaskGroup{{Type: "chief"}, group("w", 1)}, want: "a b"},
		"none of a type":         {hosts: "a,b", groups: []spec.TaskGroup{group("ps", 0), group("w", 2)}, want: "a b"},
		"too many":               {hosts: "a:2,b:2", groups: []spec.TaskGroup{group("w", 7)}, problem: "7 tasks need 7 slots, but -H or --hostfile lists 4 (a:2, b:2); add slots, or use fewer tasks"},
		"dealt out":              {hosts: "a:2,b:3", groups: []spec.TaskGroup{group("w", 5)}, deal: true, want: "a b a b b"},
		"dealt out, pinned":      {hosts: "a:2,b:2", groups: []spec.TaskGroup{at("ps", "a:1"), group("w", 3)}, deal: true, want: "a a b b"},
		"pinned":                 {hosts: "a:2,b:2", groups: []spec.TaskGroup{group("w", 2), at("ps", "a:2222")}, want: "a b a"},
		"pinned to this machine": {hosts: "own:1,b:1", groups: []spec.TaskGroup{at("ps", "localhost:2222"), group("w", 1)}, want: "own b"},
		"pinned elsewhere":       {hosts: "a:2", groups: []spec.TaskGroup{at("ps", "c:1")}, problem: `tasks[0].addresses[0]: "c:1" is not on any of the hosts in -H or --hostfile (a:2); add the host`},
		"too many are pinned":    {hosts: "a:1,b:2", groups: []spec.TaskGroup{at("ps", "a:1", "a:2")}, problem: "host a has 1 slot, but 2 tasks have its address; increase its slots"},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := must.Get(Parse(c.hosts))(t)
			hosts = Merge(hosts, "own", func(name string) bool { return name == "own" })
			err := Fill(c.groups, hosts, c.deal)
			if c.problem != "" {
				require.EqualError(t, err, c.problem)
				return
			}
			require.NoError(t, err)
			var got []string
			for _, g := range c.groups {
				for _, address := range g.Addresses {
					host, _, err := spec.SplitAddress(address)
					require.NoError(t, err)
					got = append(got, host)
				}
			}
			assert.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}
