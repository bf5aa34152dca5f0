package devserver

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHelpNamesFlagsExamplesAndExitCodes(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, ExitOK, Main([]string{"--help"}, &out, &errs))
	assert.Empty(t, errs.String())
	for _, want := range []string{
		"--db", "--ip", "--port", "--ui-port", "--headless", "--namespace", "--retention", "--idle-exit",
		"--ready-file", "--lifeline-fd", "--metrics", "--log-level", "--json", "--version", "Examples:", "Exit codes:",
	} {
		assert.Contains(t, out.String(), want)
	}
}

func TestVersionNamesTheServer(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, ExitOK, Main([]string{"--version"}, &out, &errs))
	assert.Regexp(t, `^clusterrun-devserver \(Temporal server 1\.\d+\.\d+, Web UI 2\.\d+\.\d+\)\n$`, out.String())
}

func TestMistakesInTheCommandLine(t *testing.T) {
	notOpen := strconv.Itoa(1 << 20)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--nonsense"}, "unknown flag: --nonsense"},
		{[]string{"runs.db"}, `unexpected argument "runs.db"`},
		{[]string{"--ip=0.0.0.0"}, "--ip 0.0.0.0 is not a loopback address"},
		{[]string{"--ip=192.168.1.2"}, "can run commands as you"},
		{[]string{"--ip=localhost"}, "give 127.0.0.1 or ::1"},
		{[]string{"--port=70000"}, "--port 70000 is not a port"},
		{[]string{"--ui-port=-1"}, "--ui-port -1 is not a port"},
		{[]string{"--port=7233", "--ui-port=7233"}, "the Web UI needs a port of its own"},
		{[]string{"--db="}, "--db is missing a value"},
		{[]string{"--namespace="}, "--namespace is empty"},
		{[]string{"--namespace=temporal-system"}, "the server's own"},
		{[]string{"--retention=1m"}, "--retention 1m0s is too short"},
		{[]string{"--idle-exit=-1s"}, "--idle-exit -1s is negative"},
		{[]string{"--idle-exit=soon"}, "--idle-exit"},
		{[]string{"--metrics=9465"}, `--metrics "9465": give HOST:PORT`},
		{[]string{"--metrics=127.0.0.1:70000"}, "give HOST:PORT"},
		{[]string{"--log-level=loud"}, `--log-level "loud"`},
		{[]string{"--lifeline-fd=-7"}, "--lifeline-fd -7"},
		{[]string{"--lifeline-fd=" + notOpen}, "--lifeline-fd " + notOpen + ": bad file descriptor"},
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, ExitUsage, Main(c.args, &out, &errs), "%s", c.args)
		assert.Contains(t, errs.String(), c.says, "%s", c.args)
		assert.Contains(t, errs.String(), "--help", "%s", c.args)
		assert.Empty(t, out.String(), "%s", c.args)
	}
}
