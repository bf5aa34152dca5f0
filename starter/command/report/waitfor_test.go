package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A cursor stands for the reported facts. A fact that is over and recurs is new.
func TestCursor(t *testing.T) {
	silent := func(seconds int) []outcome.Fact {
		return outcome.Facts(&starter.Status{Open: true, State: spec.RunRunning, Tasks: []starter.TaskStatus{
			{TaskStatus: spec.TaskStatus{Name: "worker-0", State: spec.TaskRunning}, Usage: &spec.LiveUsage{SilentSeconds: seconds}},
		}}, time.Now())
	}
	m := marks{}
	m.add(silent(60))
	m = must.Get(parseCursor(m.cursor()))(t)
	fresh := func(facts []outcome.Fact) []outcome.Fact {
		return outcome.News(facts, func(mark string) bool { return m[hash(mark)] })
	}
	assert.Empty(t, fresh(silent(90)), "only the time has passed")
	m.keep(silent(0))
	assert.Empty(t, fresh(silent(0)))
	require.Len(t, fresh(silent(60)), 1)
	assert.Equal(t, outcome.FactSilent, fresh(silent(60))[0].Kind)
	assert.Equal(t, marks{}, must.Get(parseCursor(""))(t))
}

func TestFlagsOfWaitFor(t *testing.T) {
	for want, o := range map[string]forOptions{
		"--for slient: unknown kind of fact; use some of done, failed, hung, silent, ": {kinds: []string{"failed", "slient"}},
		"--since abc: not a cursor":  {kinds: []string{"failed"}, since: "abc"},
		"--since a b*: not a cursor": {kinds: []string{"failed"}, since: "a b*"},
	} {
		_, err := o.check()
		require.ErrorContains(t, err, want)
		assert.Equal(t, exitcode.Usage, cli.CodeOf(err))
	}
}
