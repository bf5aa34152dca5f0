package workers

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestDefaults(t *testing.T) {
	name, err := os.Hostname()
	require.NoError(t, err)
	o, err := Options{StateDir: "/state"}.withDefaults()
	require.NoError(t, err)
	assert.Equal(t, name, o.Host)
	assert.Equal(t, spec.TaskQueue, o.Queue)
	assert.Equal(t, 2*time.Second, o.OrphanGrace)

	given := Options{StateDir: "/state", Host: "host-a", Queue: "q", OrphanGrace: time.Minute, Slots: 3}
	o, err = given.withDefaults()
	require.NoError(t, err)
	assert.Equal(t, given, o)
	again, err := o.withDefaults()
	require.NoError(t, err)
	assert.Equal(t, o, again, "a side has the options of its supervisor")

	assert.Equal(t, "/state/logs", (&side{Options: o}).logRoot())
	o.LogRoot = "/logs"
	assert.Equal(t, "/logs", (&side{Options: o}).logRoot())
}

// If a host worker cannot run, nothing is started or written.
func TestAHostWorkerThatCannotBe(t *testing.T) {
	require.EqualError(t, Supervise(t.Context(), Options{}, nil, Owner{}), "a host worker needs a state directory")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, Supervise(t.Context(), Options{StateDir: file}, nil, Owner{}), file)

	dir := t.TempDir()
	state, err := supervisor.OpenState(dir)
	require.NoError(t, err)
	defer state.Close()
	err = Supervise(t.Context(), Options{StateDir: dir}, []string{"/no/such/side"}, Owner{})
	require.ErrorContains(t, err, dir, "another one has it")
}

// A side is a supervisor's child.
func TestASideByHand(t *testing.T) {
	t.Setenv(optionsVar, "")
	require.ErrorContains(t, Side(context.Background()), "this command is started by a clusterrun supervisor, not by hand")
	text, err := json.Marshal(Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	t.Setenv(optionsVar, string(text))
	require.Error(t, Side(context.Background()))
	_, told := os.LookupEnv(optionsVar)
	assert.False(t, told, "tasks do not get it")
}
