package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestDemandOf(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want fleet.Demand
	}{
		"no more than tasks": {
			`tasks: [{type: chief}, {type: worker, count: 3}]`,
			fleet.Demand{Groups: []fleet.Group{{Tasks: 4}}, Priority: 3},
		},
		"addresses": {
			`tasks: [{type: ps, addresses: ["a:2222", "a:2223", b]}, {type: worker, addresses: ["localhost:1", "127.0.0.1:2", "[::1]:3"]}]`,
			fleet.Demand{Groups: []fleet.Group{{Tasks: 2, Host: "a"}, {Tasks: 1, Host: "b"}, {Tasks: 3}}, Priority: 3},
		},
		"devices": {
			`{tasks: [{type: chief}, {type: ps, count: 2, devices: []}, {type: worker, count: 3}, {type: own, devices: auto}], devices: "0-3"}`,
			fleet.Demand{Groups: []fleet.Group{{Tasks: 1, GPUs: 4, Devices: "0,1,2,3"}, {Tasks: 2}, {Tasks: 3, GPUs: 4, Devices: "0,1,2,3"}, {Tasks: 1, GPUs: fleet.AllGPUs, Pool: 1}}, Priority: 3},
		},
		"local barriers": {
			`{tasks: [{type: worker, count: 2}], barriers: local}`,
			fleet.Demand{Groups: []fleet.Group{{Tasks: 2}}, MaxHosts: 1, Priority: 3},
		},
		"hosts": {
			`{tasks: [{type: worker, count: 8}], hosts: {count: 2, per_host: 4, select: ["a*"], strategy: spread, exclusive: true}, priority: 1, max_run_time: 1h}`,
			fleet.Demand{
				Groups: []fleet.Group{{Tasks: 8}}, MinHosts: 2, MaxHosts: 2, PerHost: 4, Select: []string{"a*"},
				Spread: true, Exclusive: true, Priority: 1, MaxRunTime: time.Hour,
			},
		},
		"an elastic run": {
			`{tasks: [{type: chief}, {type: worker, count: 7}], hosts: "2:4", elastic: {join_wait: 1m}, restart_scope: group}`,
			fleet.Demand{Groups: []fleet.Group{{Tasks: 8}}, MinHosts: 2, MaxHosts: 4, PerHost: 2, Elastic: true, JoinWait: time.Minute, Priority: 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := must.Get(spec.DecodeYAML([]byte(c.spec), func(s *spec.RunSpec) { s.Command = []string{"x"} }))(t)
			require.Equal(t, c.want, fleet.DemandOf(s.WithDefaults()))
		})
	}
}

func TestWhatAnElasticRunAsksForWithSomeHostsLeft(t *testing.T) {
	d := fleet.Demand{Elastic: true, MinHosts: 2, MaxHosts: 4, PerHost: 1, JoinWait: time.Minute}
	require.Equal(t, d, d.With(1, spec.GrowNextGeneration), "too few: as at first")
	least := d
	least.JoinWait, least.MaxHosts = 0, 3
	require.Equal(t, least, d.With(3, spec.GrowNever))
	most := d
	most.JoinWait = 0
	require.Equal(t, most, d.With(3, spec.GrowNextGeneration))
	other := fleet.Demand{MinHosts: 2, MaxHosts: 2}
	require.Equal(t, other, other.With(2, spec.GrowNever))
}
