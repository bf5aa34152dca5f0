package harness

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Succeeds runs a clusterrun command that must succeed, and returns its output.
func (s *Server) Succeeds(t testing.TB, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := s.CLI(t, args...)
	require.Zero(t, code, "%q\n%s%s", args, stdout, stderr)
	return stdout, stderr
}

// OK is Succeeds for commands that may write to stderr.
func (s *Server) OK(t testing.TB, args ...string) (stdout string) {
	t.Helper()
	stdout, _ = s.Succeeds(t, args...)
	return stdout
}

// Fails runs a clusterrun command that must exit with the given code, and returns its stderr.
func (s *Server) Fails(t testing.TB, want int, args ...string) (stderr string) {
	t.Helper()
	code, stdout, stderr := s.CLI(t, args...)
	require.Equal(t, want, code, "%q\n%s%s", args, stdout, stderr)
	return stderr
}

// Napping returns a bash script that may call nap, as in [Bash].
func Napping(script string) string { return Bash(script)[2] }
