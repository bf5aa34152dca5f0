package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSet(t *testing.T) {
	s := &RunSpec{Stop: Stop{Signal: "SIGINT"}, Env: EnvOf(map[string]string{"A": "1"})}
	for path, value := range map[string]string{
		"stop.grace": "5s", "limits.nofile": "4096", "hosts": "2:4", "hosts.exclusive": "true", "env.B": "2:3", "logs.group": "",
		"stop_together.clean_errors": "[a, 'b,c']", "tasks": "[{type: worker, count: 2}]", "elastic.grow": "never", "logs.redirects": "0", "env.C": "true",
	} {
		require.NoError(t, s.Set(path, value), path)
	}
	assert.Equal(t, &RunSpec{
		Stop: Stop{Signal: "SIGINT", Grace: DurationOf(5e9)}, Env: EnvOf(map[string]string{"A": "1", "B": "2:3", "C": "true"}), Logs: Logs{Redirects: "0"},
		Limits: Limits{NoFile: new(4096)}, Hosts: Hosts{Count: "2:4", Exclusive: true}, Elastic: Elastic{Grow: GrowNever},
		StopTogether: StopTogether{CleanErrors: []string{"a", "b,c"}}, Tasks: []TaskGroup{{Type: "worker", Count: new(2)}},
	}, s)

	for path, want := range map[string]string{
		"stop.grce":     "stop.grce: not a field of stop; did you mean grace?",
		"grace":         "grace: not a field of a run spec; did you mean tasks[].stop.grace?",
		"limits.nofile": `limits.nofile: must be a whole number`,
		"stop.grace.x":  "stop.grace: must be",
		"":              `not a field`,
	} {
		require.ErrorContains(t, s.Set(path, "[many]"), want)
	}
	require.ErrorContains(t, s.Set("dir", "a\n---\nb"), "a second document follows")
}
