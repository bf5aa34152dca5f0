package workflows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// The largest run's status fits into a message to the server in each state of its tasks. The
// tasks' exits are omitted if they do not fit.
func TestTheStatusOfTheLargestRunFits(t *testing.T) {
	s := (&spec.RunSpec{Command: []string{"x"}, OnFailure: spec.OnFailureContinue, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(spec.MaxTasks)}}}).WithDefaults()
	state := &runState{spec: s, machine: lifecycle.New(s, s.TaskList()), placed: map[string]*host{}, addresses: map[string]string{}, launches: map[string]*launch{}}
	r := &reporter{state, &placer{runState: state}}
	for i, a := range r.machine.Step(lifecycle.Begin{}) {
		name := a.(lifecycle.Launch).Task.Name()
		r.placed[name], r.addresses[name] = &host{HeldHost: HeldHost{Name: fmt.Sprint("host-", i/40)}}, fmt.Sprint("10.0.0.7:", 20000+i)
		r.launches[name] = newLaunch(a.(lifecycle.Launch), nil)
	}
	status := must.Get(r.answerStatus())(t)
	assert.Less(t, shorten.Size(status), maxStatus)
	for i := range 2000 {
		r.machine.Step(lifecycle.TaskEnded{Task: spec.TaskName("worker", i), Exit: &spec.Exit{
			Cause: spec.CauseOrigin, ExitCode: 3, Message: strings.Repeat("m", 1000), LogDir: "/" + strings.Repeat("d", 100),
		}})
	}
	status = must.Get(r.answerStatus())(t)
	assert.Less(t, shorten.Size(status), maxStatus)
	require.Len(t, status.Tasks, spec.MaxTasks)
	assert.Equal(t, spec.TaskEnded, status.Tasks[0].State)
	assert.Equal(t, spec.TaskRunning, status.Tasks[2000].State)
}
