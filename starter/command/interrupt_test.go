package command

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInterruptsOf(t *testing.T) {
	four := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}
	for value, want := range map[string][]syscall.Signal{
		"":                         four, // TE-40
		"  ":                       four,
		"SIGTERM,SIGUSR1, SIGUSR2": {syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}, // TE-41, TE-45
		"SIGUSR1,USR1":             {syscall.SIGUSR1},
	} {
		got, problems := interruptsOf(value)
		assert.Equal(t, want, got, value)
		assert.Empty(t, problems, value)
	}
	got, problems := interruptsOf("SIGTERM,SIGTRM,,SIGKILL,SIGCHLD") // TE-42
	assert.Equal(t, []syscall.Signal{syscall.SIGTERM}, got)
	assert.Len(t, problems, 4)
	assert.Contains(t, problems[0], `"SIGTRM" is no signal; did you mean SIGTERM?`)
	assert.Contains(t, problems[2], `"SIGKILL" cannot be handled`)
	assert.Contains(t, problems[3], `"SIGCHLD" is used by clusterrun itself`)
}
