package spec

import (
	"maps"
	"slices"
	"time"
)

// Defaults of a spec. They are the seeds', where those have one.
const (
	DefaultRPCLayer         = "grpc"
	DefaultChiefGrace       = Duration(3 * time.Second)
	DefaultOnFailure        = OnFailureStop
	DefaultRestartScope     = RestartScopeTask
	DefaultPlacementTimeout = Duration(time.Minute)
	DefaultBarriers         = BarriersServer
	DefaultStopSignal       = "SIGTERM"
	DefaultStopGrace        = Duration(30 * time.Second)
	DefaultStdMask          = "3"
	DefaultTogetherGrace    = Duration(2 * time.Minute)
)

// WithDefaults returns a deep copy in which every field that has a default is
// set, and signals have their canonical names. What stays unset means no limit
// (MaxRestarts, MaxRunTime, Timeout) or is for the host to fill in (Dir,
// Logs.Dir). It may be applied again without effect.
func (s *RunSpec) WithDefaults() *RunSpec {
	d := s.clone()
	setDefault(&d.RPCLayer, DefaultRPCLayer)
	setPointer(&d.DependenceOnChief, true)
	setPointer(&d.ChiefGrace, DefaultChiefGrace)
	setDefault(&d.OnFailure, DefaultOnFailure)
	setDefault(&d.RestartScope, DefaultRestartScope)
	setPointer(&d.PlacementTimeout, DefaultPlacementTimeout)
	setDefault(&d.Barriers, DefaultBarriers)
	setDefault(&d.Stop.Signal, DefaultStopSignal)
	d.Stop.Signal = canonicalSignal(d.Stop.Signal)
	setPointer(&d.Stop.Grace, DefaultStopGrace)
	setPointer(&d.StopTogether.Grace, DefaultTogetherGrace)
	if d.StopTogether.CleanErrors == nil {
		d.StopTogether.CleanErrors = slices.Clone(DefaultCleanErrors)
	}
	setPointer(&d.Closures.QueueSize, DefaultQueueSize)
	setDefault(&d.Logs.Redirects, DefaultStdMask)
	setDefault(&d.Logs.Tee, DefaultStdMask)
	setDefault(&d.Logs.Prefix, DefaultPrefix)
	if d.EnvProfiles == nil {
		d.EnvProfiles = slices.Clone(envProfiles)
	}
	for i := range d.Tasks {
		if len(d.Tasks[i].Addresses) == 0 {
			setPointer(&d.Tasks[i].Count, 1)
		}
		d.Tasks[i].Stop.Signal = canonicalSignal(d.Tasks[i].Stop.Signal)
	}
	return d
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func setPointer[T any](p **T, def T) {
	if *p == nil {
		*p = new(def)
	}
}

func (s *RunSpec) clone() *RunSpec {
	d := *s
	d.Command = slices.Clone(s.Command)
	d.Env = maps.Clone(s.Env)
	d.DependenceOnChief = clonePointer(s.DependenceOnChief)
	d.ChiefGrace = clonePointer(s.ChiefGrace)
	d.MaxRestarts = clonePointer(s.MaxRestarts)
	d.MaxRunTime = clonePointer(s.MaxRunTime)
	d.Timeout = clonePointer(s.Timeout)
	d.PlacementTimeout = clonePointer(s.PlacementTimeout)
	d.Stop.Grace = clonePointer(s.Stop.Grace)
	d.StopTogether.Grace = clonePointer(s.StopTogether.Grace)
	d.StopTogether.CleanErrors = slices.Clone(s.StopTogether.CleanErrors)
	d.Closures.QueueSize = clonePointer(s.Closures.QueueSize)
	d.Closures.TransientFailures = clonePointer(s.Closures.TransientFailures)
	d.Logs.LocalRanksFilter = slices.Clone(s.Logs.LocalRanksFilter)
	d.Logs.Filter = slices.Clone(s.Logs.Filter)
	d.Logs.DuplicateStdoutFilters = slices.Clone(s.Logs.DuplicateStdoutFilters)
	d.Logs.DuplicateStderrFilters = slices.Clone(s.Logs.DuplicateStderrFilters)
	d.Devices = slices.Clone(s.Devices)
	d.CPUs = slices.Clone(s.CPUs)
	d.EnvProfiles = slices.Clone(s.EnvProfiles)
	d.Tasks = slices.Clone(s.Tasks)
	for i := range d.Tasks {
		d.Tasks[i] = d.Tasks[i].clone()
	}
	return &d
}

func (g TaskGroup) clone() TaskGroup {
	g.Count = clonePointer(g.Count)
	g.Addresses = slices.Clone(g.Addresses)
	g.Command = slices.Clone(g.Command)
	g.Args = slices.Clone(g.Args)
	g.Env = maps.Clone(g.Env)
	g.Stop.Grace = clonePointer(g.Stop.Grace)
	g.Devices = slices.Clone(g.Devices)
	g.CPUs = slices.Clone(g.CPUs)
	g.Overrides = maps.Clone(g.Overrides)
	for _, index := range sortedKeys(g.Overrides) {
		o := g.Overrides[index]
		o.Command = slices.Clone(o.Command)
		o.Args = slices.Clone(o.Args)
		o.Env = maps.Clone(o.Env)
		g.Overrides[index] = o
	}
	return g
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
