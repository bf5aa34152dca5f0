package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// Read from a pipe, the output of a run has the task that the filter names (SEED-78), with the
// time of day, and only the last state of a progress bar (SEED-90). Bytes for a terminal stay
// as they are.
func TestConsoleOfARun(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	code, stdout, stderr := s.CLI(t, "run", "-n", "2", "--timestamps", "--filter", "worker-1", "--", "/bin/bash", "-c",
		`printf '\r 10%%\r 50%%\r100%%\n' >&2; printf '\033[31mrank %s\r\nlast' $RANK`)
	assert.Equal(t, 0, code, stderr)
	const stamp = `\d\d:\d\d:\d\d\.\d{3} `
	assert.Regexp(t, `^`+stamp+`\[worker-1\]:    \x1b\[31mrank 1\r\n`+stamp+`\[worker-1\]:    last\n$`, stdout)
	assert.Regexp(t, `(?m)^`+stamp+`\[worker-1\]:    100%$`, stderr)
	assert.NotContains(t, stderr, "50%")
	assert.NotContains(t, stderr, "worker-0]")
}

// SEED-76: without a log directory no file is followed, and nothing is waited for. Unlike the
// seed, clusterrun does not lose the output.
func TestConsoleWithoutLogs(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	code, stdout, stderr := s.CLI(t, "run", "-n", "1", "--log-dir", "/dev/null", "--", "echo", "shown")
	assert.Equal(t, 0, code, stderr)
	assert.Equal(t, "shown\n", stdout)
	assert.Contains(t, stderr, "no logs are kept")
}
