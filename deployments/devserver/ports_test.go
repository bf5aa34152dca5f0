package devserver

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port

	assert.Contains(t, refused(t, ExitFailure, "--port=0", "--headless", fmt.Sprintf("--metrics=127.0.0.1:%d", port)),
		fmt.Sprintf("--metrics: 127.0.0.1:%d is in use by another program", port))
	for flag, args := range map[string][]string{
		"--port":    {"--headless"},
		"--ui-port": {"--port=0"},
	} {
		db := testFile(t)
		ready := filepath.Join(filepath.Dir(db), "ready.json")
		args = append(args, fmt.Sprintf("%s=%d", flag, port), "--db", db, "--ready-file", ready)
		says := refused(t, ExitFailure, args...)
		assert.Contains(t, says, fmt.Sprintf("%s: 127.0.0.1:%d is in use by another program", flag, port))
		assert.False(t, exists(db), "nothing is half started")
		assert.False(t, exists(ready))
	}
}

func TestAllTakenPortsAreNamed(t *testing.T) {
	flags, args := []string{"--port", "--ui-port"}, []string{}
	for _, flag := range flags {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		args = append(args, fmt.Sprintf("%s=%d", flag, l.Addr().(*net.TCPAddr).Port))
	}
	says := refused(t, ExitFailure, args...)
	for i, flag := range flags {
		_, port, _ := strings.Cut(args[i], "=")
		assert.Contains(t, says, fmt.Sprintf("%s: 127.0.0.1:%s is in use by another program", flag, port))
	}
}

func TestChosenPortsAreDistinctAndFree(t *testing.T) {
	o := DefaultOptions()
	o.Port, o.UIPort = 0, 0
	p, err := choosePorts(o)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, port := range []int{p.frontend, p.history, p.matching, p.worker, p.ui} {
		assert.NotZero(t, port)
		assert.False(t, seen[port])
		seen[port] = true
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		require.NoError(t, err, "TIME_WAIT must not keep us out")
		defer l.Close()
	}

	o.Headless = true
	p, err = choosePorts(o)
	require.NoError(t, err)
	assert.Zero(t, p.ui)
}
