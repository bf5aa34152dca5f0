package run

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// broken is an output that has lost its reader.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// Our own messages are written even if programs' output cannot be.
func TestVoiceOutlivesABrokenOutput(t *testing.T) {
	var stderr bytes.Buffer
	a := &cli.App{Err: &stderr}
	console := tasklog.NewConsole(broken{}, &stderr, tasklog.ConsoleOptions{})
	a.Printer.Through(console)
	a.Say("one")
	console.Deliver(tasklog.Chunk{Data: []byte("x\n"), Start: true})
	a.Say("two")
	assert.Equal(t, "clusterrun: one\nclusterrun: two\n", stderr.String())
}

func TestDirectOutput(t *testing.T) {
	for logs, want := range map[*spec.Logs]bool{{}: false, {Tee: "0"}: false, {Tee: "0", Redirects: "1"}: true, {Dir: spec.NullDir}: true} {
		assert.Equal(t, want, directOutput((&spec.RunSpec{Logs: *logs, Tasks: []spec.TaskGroup{{Type: "worker"}}}).WithDefaults()), "%+v", logs)
	}
}
