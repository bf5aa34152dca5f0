package spec

import (
	"cmp"
	"slices"
	"time"
)

// group returns the task group of the given type. The type of a task that was added during the run
// may not be in the spec.
func (s *RunSpec) group(typ string) TaskGroup {
	for _, g := range s.Tasks {
		if g.Type == typ {
			return g
		}
	}
	return TaskGroup{}
}

// RestartsTasks reports whether the host restarts a single failed task. In restart scope "group"
// the run restarts the whole group.
func (s *RunSpec) RestartsTasks() bool {
	return s.AutoRestart && s.RestartScope != RestartScopeGroup
}

// StopOf returns a task's stop signal, and the time from that signal to SIGKILL. The spec must
// include defaults.
func (s *RunSpec) StopOf(t Task) (signal string, grace time.Duration) {
	g := s.group(t.Type)
	return cmp.Or(g.Stop.Signal, s.Stop.Signal), cmp.Or(g.Stop.Grace, s.Stop.Grace).Std()
}

// StopScopeOf returns which processes the stop signal reaches first. The spec must include
// defaults.
func (s *RunSpec) StopScopeOf(t Task) StopScope {
	return cmp.Or(s.group(t.Type).Stop.Scope, s.Stop.Scope)
}

// ErrorGraceOf returns how long a task that printed or reported an error may take to exit before it
// is stopped. The spec must include defaults.
func (s *RunSpec) ErrorGraceOf(t Task) time.Duration {
	return cmp.Or(s.group(t.Type).Stop.ErrorGrace, s.Stop.ErrorGrace).Std()
}

// LongestGrace returns the longest time from any task's stop signal to SIGKILL. The spec must
// include defaults.
func (s *RunSpec) LongestGrace() time.Duration {
	longest := s.Stop.Grace.Std()
	for _, g := range s.Tasks {
		longest = max(longest, g.Stop.Grace.Std())
	}
	return longest
}

// Streams describes where a task's output streams go. Streams in File go to their files, streams in
// Tee are also shown on the console, and streams in Console go only to the console. All other
// output is dropped.
type Streams struct{ File, Tee, Console Std }

// StreamsOf returns where a task's output goes, given its local rank. The spec must be valid and
// include defaults.
func (s *RunSpec) StreamsOf(t Task, localRank int) Streams {
	g := s.group(t.Type)
	redirects, tee := s.Logs.mask(s.Logs.Redirects, t.Rank), s.Logs.mask(s.Logs.Tee, t.Rank)
	if g.Logs.Redirects != "" {
		redirects = s.Logs.mask(g.Logs.Redirects, t.Index)
	}
	if g.Logs.Tee != "" {
		tee = s.Logs.mask(g.Logs.Tee, t.Index)
	}
	streams := Streams{File: redirects | tee, Tee: tee, Console: StdAll &^ (redirects | tee)}
	if !s.Logs.shows(t, localRank) {
		streams.Tee, streams.Console = StdNone, StdNone
	}
	if s.Logs.Dir == NullDir {
		// If there is no file, the output is shown directly, without a prefix. torchrun instead
		// tails the null device, and loses the output.
		streams.Console |= streams.Tee
		streams.File, streams.Tee = StdNone, StdNone
	}
	return streams
}

// mask parses a valid mask and returns one rank's part.
func (l Logs) mask(text string, rank int) Std {
	m, err := ParseStd(text)
	if err != nil {
		return StdAll
	}
	return m.Of(rank)
}

// shows reports whether the filters allow a task's output on the console.
func (l Logs) shows(t Task, localRank int) bool {
	if len(l.LocalRanksFilter) > 0 && !slices.Contains(l.LocalRanksFilter, localRank) {
		return false
	}
	return len(l.Filter) == 0 || slices.Contains(l.Filter, t.Type) || slices.Contains(l.Filter, t.Name())
}

// GPUsPerTaskOf returns a type's exclusive GPUs per task. If it is 0, the task shares the GPUs of
// [RunSpec.DevicesOf].
func (s *RunSpec) GPUsPerTaskOf(typ string) int {
	g := s.group(typ)
	switch n := cmp.Or(g.GPUsPerTask, s.GPUsPerTask); {
	case n == nil, g.GPUsPerTask == nil && g.Devices != nil:
		return 0
	default:
		return *n
	}
}

// DevicesOf returns the devices that tasks of a type share on each host, or nil. shared reports
// whether types without their own devices also use them.
func (s *RunSpec) DevicesOf(typ string) (r Resources, shared bool) {
	if g := s.group(typ); g.Devices != nil {
		return g.Devices, false
	}
	return s.Devices, true
}

// CPUsOf is like DevicesOf, for CPUs.
func (s *RunSpec) CPUsOf(typ string) (r Resources, shared bool) {
	if g := s.group(typ); g.CPUs != nil {
		return g.CPUs, false
	}
	return s.CPUs, true
}
