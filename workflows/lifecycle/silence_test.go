package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Each line of a script is a look: its time, and the signs of life by then. The answer is how long
// the process has been silent.
func TestSilence(t *testing.T) {
	datadriven.RunTest(t, "testdata/silence.txt", func(t *testing.T, d *datadriven.TestData) string {
		var s lifecycle.Silence
		var signs lifecycle.Liveness
		var b strings.Builder
		begun := time.Now()
		for line := range strings.Lines(d.Input) {
			fields := strings.Fields(line)
			for _, f := range fields[1:] {
				name, value, _ := strings.Cut(f, "=")
				switch name {
				case "output":
					_, err := fmt.Sscan(value, &signs.Output)
					require.NoError(t, err)
				case "cpu":
					signs.CPU = span(t, value)
				case "idle":
					signs.Idle = value == "yes"
				case "progress":
					signs.Progress = value
				default:
					d.Fatalf(t, "no such sign: %s", f)
				}
			}
			fmt.Fprintf(&b, "%s: %s\n", fields[0], s.Look(begun.Add(span(t, fields[0])), signs))
		}
		return b.String()
	})
}

func span(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A host is given up when its slowest process must be gone, and never by a run that keeps its
// processes.
func TestFence(t *testing.T) {
	s := &spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker"}, {Type: "ps", Stop: spec.Stop{Grace: spec.DurationOf(time.Minute)}}}}
	s = s.WithDefaults()
	_, ok := lifecycle.FenceOf(s, 1)
	assert.False(t, ok)
	f, ok := lifecycle.FenceOf(s, 2)
	assert.True(t, ok)
	assert.Equal(t, lifecycle.Fence{StopAfter: 2 * time.Minute, Grace: time.Minute}, f)
	assert.Equal(t, 2*time.Minute+1200*time.Millisecond+time.Minute+lifecycle.KillBound+5*time.Second, f.Passed())
	s.OnDisconnect = spec.OnDisconnectKeep
	_, ok = lifecycle.FenceOf(s, 2)
	assert.False(t, ok)
}
