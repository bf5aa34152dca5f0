package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// apart is the current directory as log directory, so that it differs between programs, as on
// different machines.
const apart = "/proc/self/cwd/logs"

// If only the host workers can read their files, all output comes from their services, during the
// run and afterwards, each line once and with its task.
func TestOutputFromEveryHost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	serve := []string{"--listen", "127.0.0.1", "--log-dir", apart}
	b := f.StartWorker(t, append([]string{"--host-name", "host-b"}, serve...)...)
	f.StartWorker(t, append([]string{"--host-name", "host-c"}, serve...)...)
	const lines = 500
	script := fmt.Sprintf(`for i in $(seq %d); do echo "$CLUSTERRUN_TASK line $i"; done; echo "no newline yet" >&2; printf half
		echo up > $DIR/up-$CLUSTERRUN_TASK; until [ -e $DIR/end ]; do nap; done; echo " whole"; printf 'the end' >&2`, lines)
	run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{{
		Type: "worker", Addresses: []string{"host-b", "host-c", "host-b", "host-c"}, Command: harness.Bash(script),
	}}})
	follow := f.StartCLI(t, "logs", "-f", run.GetID())
	for i := range 4 {
		f.file(fmt.Sprintf("up-worker-%d", i))
	}
	want := func(task int) (stdout []string) {
		for i := 1; i <= lines; i++ {
			stdout = append(stdout, fmt.Sprintf("[worker-%d]:    worker-%d line %d", task, task, i))
		}
		return append(stdout, fmt.Sprintf("[worker-%d]:    half whole", task))
	}
	of := func(text string, task int) []string {
		return slices.DeleteFunc(linesWith(text), func(line string) bool { return !strings.HasPrefix(line, fmt.Sprintf("[worker-%d]:", task)) })
	}
	harness.Eventually(t, "all is followed so far", func() bool { return strings.Count(follow.Stdout(), " line 500\n") == 4 })

	// One service is down during a line.
	require.NoError(t, syscall.Kill(b.Side(), syscall.SIGKILL))
	b.AwaitReady()
	touch(t, f, "end")
	assert.Zero(t, follow.ExitCode(), follow.Stderr())
	r := f.result(run)
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)

	after, afterErr := f.Succeeds(t, "logs", run.GetID())
	for task := range 4 {
		assert.Equal(t, want(task), joinHalves(of(follow.Stdout(), task)), "followed")
		assert.Equal(t, want(task), of(after, task), "afterwards")
		stderr := []string{fmt.Sprintf("[worker-%d]:    no newline yet", task), fmt.Sprintf("[worker-%d]:    the end", task)}
		assert.Equal(t, stderr, of(follow.Stderr(), task))
		assert.Equal(t, stderr, of(afterErr, task))
	}

	stdout := f.OK(t, "logs", run.GetID(), "--tail", "2", "--stdout", "--attempt", "last", "worker-1", "worker-2")
	assert.ElementsMatch(t, append(want(1)[lines-1:], want(2)[lines-1:]...), linesWith(stdout))
	stdout = f.OK(t, "logs", run.GetID(), "--json", "--stderr", "worker-3")
	assert.Equal(t, `{"task":"worker-3","attempt":0,"stream":"stderr","line":"no newline yet"}`+"\n"+
		`{"task":"worker-3","attempt":0,"stream":"stderr","line":"the end","partial":true}`+"\n", stdout)

}

// joinHalves joins a partial line with its rest.
func joinHalves(lines []string) []string {
	for i, line := range lines {
		if i > 0 && strings.HasSuffix(lines[i-1], " half") {
			_, rest, _ := strings.Cut(line, ":    ")
			return append(append(slices.Clone(lines[:i-1]), lines[i-1]+rest), lines[i+1:]...)
		}
	}
	return lines
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	return string(b)
}

func linesWith(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}
