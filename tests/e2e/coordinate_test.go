package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// coordinateProgram is `clusterrun coordinate`, with its stdin and stdout.
type coordinateProgram struct {
	*exec.Cmd
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

func (l *local) coordinate(run string) *coordinateProgram {
	l.t.Helper()
	c := &coordinateProgram{Cmd: exec.Command(harness.Clusterrun(l.t), "coordinate", run), t: l.t}
	c.Env = harness.Env(l.home)
	var err error
	c.in, err = c.StdinPipe()
	require.NoError(l.t, err)
	out, err := c.StdoutPipe()
	require.NoError(l.t, err)
	c.out = bufio.NewReader(out)
	require.NoError(l.t, c.Start())
	l.t.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

func (c *coordinateProgram) ask(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.in, line+"\n")
	require.NoError(c.t, err)
}

func (c *coordinateProgram) answer() map[string]any {
	c.t.Helper()
	line, err := c.out.ReadBytes('\n')
	require.NoError(c.t, err)
	var a map[string]any
	require.NoError(c.t, json.Unmarshal(line, &a), string(line))
	return a
}

// A program of any language schedules closures on the tasks of a run.
func TestCoordinate(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	python, err := exec.LookPath("python3")
	require.NoError(t, err)
	run := l.start("run", "--id", "lines", "-n", "2",
		"--env", "PYTHONPATH="+filepath.Join(harness.Root(), "activities/tasks/python"), "--env", "PYTHONDONTWRITEBYTECODE=1", "--",
		python, "-c", `
import clusterrun
@clusterrun.function
def add(a, b=1):
    return a + b
@clusterrun.function
def fail():
    raise ValueError("no")
clusterrun.serve()`)
	harness.Eventually(t, "the run is there", func() bool {
		code, _, _ := l.run("status", "lines")
		return code == 0
	})

	c := l.coordinate("lines")
	assert.Equal(t, map[string]any{"event": "open", "run": "lines"}, c.answer())
	c.ask(`{"id":1,"op":"schedule","closures":[{"function":"add","args":[1]},{"function":"add","args":[1],"kwargs":{"b":2}}]}`)
	assert.Equal(t, map[string]any{"id": 1.0, "ids": []any{1.0, 2.0}}, c.answer())
	c.ask(`{"id":2,"op":"join"}`)
	assert.Equal(t, map[string]any{"id": 2.0}, c.answer())
	c.ask(`{"id":3,"op":"fetch","ids":[2,1]}`)
	assert.Equal(t, map[string]any{"id": 3.0, "outcomes": []any{map[string]any{"value": 3.0}, map[string]any{"value": 2.0}}}, c.answer())
	c.ask(`{"id":4,"op":"call","closures":[{"function":"fail","options":{"detached":true}},{"function":"add","args":[4]}]}`)
	outcomes := c.answer()["outcomes"].([]any)
	failed := outcomes[0].(map[string]any)
	assert.Equal(t, "ValueError", failed["error"].(map[string]any)["kind"])
	assert.NotContains(t, failed, "lost")
	assert.Equal(t, map[string]any{"value": 5.0}, outcomes[1])
	// A value is read in the history of the queue, perhaps before the queue itself does.
	harness.Eventually(t, "all is done", func() bool {
		c.ask(`{"id":5,"op":"done"}`)
		a := c.answer()
		assert.Equal(t, 5.0, a["id"])
		return a["done"] == true
	})
	c.ask(`{"id":6,"op":"cancel"}`)
	assert.Equal(t, map[string]any{"id": 6.0}, c.answer())

	// What is wrong is refused by itself.
	for line, want := range map[string]string{
		`{"id":7,"op":"schedule"}`: "closures is missing",
		`{"id":7,"op":"call","closures":[{"function":"add"},{"function":""}]}`: "closures[1]",
		`{"id":7,"op":"fetch"}`:            "ids is missing",
		`{"id":7,"op":"fetch","ids":[99]}`: "there is no closure 99",
		`{"id":7,"op":"dance"}`:            `op is "dance"; want schedule, call, fetch, join, done or cancel`,
		`{"id":7,"op":1}`:                  "the line is no request",
	} {
		c.ask(line)
		problem, _ := c.answer()["error"].(map[string]any)
		assert.Equal(t, "RefusedError", problem["kind"], line)
		assert.Contains(t, problem["message"], want, line)
	}

	// The error of a closure is that of the next join, once.
	c.ask(`{"id":8,"op":"schedule","closures":[{"function":"fail"}]}`)
	assert.Contains(t, c.answer(), "ids")
	c.ask(`{"id":9,"op":"join"}`)
	assert.Equal(t, "ValueError", c.answer()["error"].(map[string]any)["kind"])
	c.ask(`{"id":10,"op":"join"}`)
	assert.Equal(t, map[string]any{"id": 10.0}, c.answer())

	require.NoError(t, c.in.Close())
	require.NoError(t, c.Wait(), "the end of stdin ends it")
	assert.False(t, run.Exited(), "and nothing else")

	code, _, stderr := l.run("coordinate", "nobody")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "nobody")
	code, _, stderr = l.run("stop", "lines")
	assert.Zero(t, code, stderr)
	assert.NotZero(t, run.ExitCode())
}
