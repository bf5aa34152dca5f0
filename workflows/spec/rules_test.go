package spec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func streamsSpec(l Logs, groups ...TaskGroup) *RunSpec {
	return (&RunSpec{Command: []string{"x"}, Tasks: groups, Logs: l}).WithDefaults()
}

// TE-25, TE-28, TE-30, SEED-77: a teed stream also goes to a file; a stream that is neither
// redirected nor teed goes to the console.
func TestStreams(t *testing.T) {
	two := TaskGroup{Type: "worker", Count: new(2)}
	s := streamsSpec(Logs{Redirects: "0:2,1:0", Tee: "0:1,1:2"}, two)
	tasks := s.TaskList()
	assert.Equal(t, Streams{File: StdAll, Tee: StdOut}, s.StreamsOf(tasks[0], 0))
	assert.Equal(t, Streams{File: StdErr, Tee: StdErr, Console: StdOut}, s.StreamsOf(tasks[1], 1))

	for mask, want := range map[string]Streams{
		"0": {Console: StdAll}, "1": {File: StdOut, Console: StdErr}, "2": {File: StdErr, Console: StdOut}, "3": {File: StdAll},
	} {
		s := streamsSpec(Logs{Redirects: mask, Tee: "0"}, two)
		assert.Equal(t, want, s.StreamsOf(tasks[0], 0), mask)
	}
}

// SEED-78: other ranks are not tailed and, if not redirected, go nowhere; an empty filter does
// not filter.
func TestFiltersOfStreams(t *testing.T) {
	s := streamsSpec(Logs{Redirects: "0:3", Tee: "0", LocalRanksFilter: []int{1}}, TaskGroup{Type: "worker", Count: new(2)})
	tasks := s.TaskList()
	assert.Equal(t, Streams{File: StdAll}, s.StreamsOf(tasks[0], 0))
	assert.Equal(t, Streams{Console: StdAll}, s.StreamsOf(tasks[1], 1))
	assert.Equal(t, Streams{}, s.StreamsOf(tasks[1], 2), "the local rank counts, not the rank")

	s = streamsSpec(Logs{Filter: []string{"worker-1", "ps"}}, TaskGroup{Type: "worker", Count: new(2)}, TaskGroup{Type: "ps"})
	tasks = s.TaskList()
	assert.Equal(t, StdNone, s.StreamsOf(tasks[0], 0).Tee)
	assert.Equal(t, StdAll, s.StreamsOf(tasks[1], 1).Tee)
	assert.Equal(t, StdAll, s.StreamsOf(tasks[2], 2).Tee)
}

func TestStreamsOfAType(t *testing.T) {
	s := streamsSpec(Logs{}, TaskGroup{Type: "worker"}, TaskGroup{Type: "ps", Count: new(2), Logs: GroupLogs{Redirects: "0", Tee: "1:1"}})
	tasks := s.TaskList()
	assert.Equal(t, Streams{File: StdAll, Tee: StdAll}, s.StreamsOf(tasks[0], 0))
	assert.Equal(t, Streams{Console: StdAll}, s.StreamsOf(tasks[1], 1))
	assert.Equal(t, Streams{File: StdOut, Tee: StdOut, Console: StdErr}, s.StreamsOf(tasks[2], 2))
	added := Task{Type: "evaluator", Rank: 3}
	assert.Equal(t, StdAll, s.StreamsOf(added, 3).Tee, "a type the spec does not know")
}

// SEED-76
func TestNullDirHasNoFiles(t *testing.T) {
	s := streamsSpec(Logs{Dir: NullDir, Redirects: "1", Tee: "0"}, TaskGroup{Type: "worker"})
	assert.Equal(t, Streams{Console: StdErr}, s.StreamsOf(s.TaskList()[0], 0))
	s = streamsSpec(Logs{Dir: NullDir}, TaskGroup{Type: "worker"})
	assert.Equal(t, Streams{Console: StdAll}, s.StreamsOf(s.TaskList()[0], 0), "what was to be shown is shown")
}

func TestStopOfAType(t *testing.T) {
	s := (&RunSpec{Command: []string{"x"}, Stop: Stop{Signal: "SIGUSR1"}, Tasks: []TaskGroup{
		{Type: "worker"}, {Type: "ps", Stop: Stop{Signal: "INT", Grace: DurationOf(time.Second), Scope: StopScopeGroup}},
	}}).WithDefaults()
	tasks := s.TaskList()
	signal, grace := s.StopOf(tasks[0])
	assert.Equal(t, "SIGUSR1", signal)
	assert.Equal(t, 30*time.Second, grace)
	signal, grace = s.StopOf(tasks[1])
	assert.Equal(t, "SIGINT", signal)
	assert.Equal(t, time.Second, grace)
	assert.Equal(t, StopScopeProgram, s.StopScopeOf(tasks[0]))
	assert.Equal(t, StopScopeGroup, s.StopScopeOf(tasks[1]))
}

func TestResources(t *testing.T) {
	assert.Equal(t, []string{"0", "1", "2", "8", "GPU-1-2"}, Resources{"0-2", "8", "GPU-1-2"}.Expand())
	assert.True(t, ResourcesOf("auto").Auto())
	assert.NotNil(t, ResourcesOf(""), "none, which is not the same as not given")
	s := &RunSpec{Devices: Resources{"auto"}, Tasks: []TaskGroup{{Type: "worker"}, {Type: "ps", Devices: Resources{}}}}
	r, shared := s.DevicesOf("worker")
	assert.True(t, r.Auto() && shared)
	r, shared = s.DevicesOf("ps")
	assert.True(t, r != nil && len(r) == 0 && !shared)
}
