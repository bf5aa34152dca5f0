package activities

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// If a newer program asks for something unknown, the error names it, and counts as a refusal by
// this host rather than a mistake of the run.
func TestWhatIsNotUnderstood(t *testing.T) {
	h := assemble(&core{Config: Config{Name: "host-a"}})
	for text, want := range map[string]string{
		`{"spec": {"command": ["true"], "tasks": [{"type": "worker", "nicer": 1}]}, "generation": 0}`:           `host host-a has clusterrun ` + spec.Version + `, which does not understand the run's spec (unknown field "nicer"); upgrade it there`,
		`{"spec": {"command": ["true"], "tasks": [{"type": "worker"}]}, "generation": 0, "moon": 1}`:            `unknown field "moon"`,
		`{"spec": {"command": ["true"], "tasks": [{"type": "worker"}], "on_silence": "sing"}, "generation": 0}`: `on_silence`,
		`{"spec": {"command": "true", "tasks": [{"type": "worker"}]}, "generation": 0}`:                         `command`,
		`{"generation": 0}`: "there is no spec",
		`{"spec": {"command": ["true"], "tasks": [{"type": "worker"}]}, "generation": 0}`: "",
	} {
		var in hostapi.ReserveInput
		require.NoError(t, json.Unmarshal([]byte(text), &in))
		err := h.reservations.understands(in)
		if want == "" {
			assert.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		var refused *temporal.ApplicationError
		require.True(t, errors.As(err, &refused))
		assert.Equal(t, spec.ErrPlacement, refused.Type())
	}
}

// An elastic run that has lost a host requests fewer tasks of the others than its spec has.
func TestAPartOfAnElasticRunIsUnderstood(t *testing.T) {
	s, err := spec.DecodeYAML([]byte(`{tasks: [{type: worker, count: 6, logs: {tee: "5:3"},
		overrides: {"0": {command: [a]}, "1": {command: [a]}, "2": {command: [a]}, "3": {command: [a]}, "4": {command: [a]}, "5": {command: [b]}}}],
		logs: {filter: [worker-4], redirects: "4:1"}, hosts: {count: "1:3"}, restart_scope: group}`))
	require.NoError(t, err)
	require.NoError(t, s.Validate())
	for _, h := range []*Host{assemble(&core{}), assemble(&core{Config: Config{Guard: &guard.Guard{}}})} {
		alone := s.Sized(2)
		require.Error(t, alone.Validate())
		assert.NoError(t, h.reservations.understands(hostapi.ReserveInput{Spec: alone}))
		assert.NoError(t, h.reservations.understands(hostapi.ReserveInput{Spec: s.Sized(4), Tasks: []string{"worker-0", "worker-1"}}))
		assert.NoError(t, h.reservations.understands(hostapi.ReserveInput{Spec: s, Tasks: []string{"worker-0", "worker-1"}}))

		newer := *alone
		newer.OnFailure = "hibernate"
		assert.ErrorContains(t, h.reservations.understands(hostapi.ReserveInput{Spec: &newer}), "hibernate")
		huge := *alone
		huge.Hosts.Count = "1:9223372036854775807"
		assert.ErrorContains(t, h.reservations.understands(hostapi.ReserveInput{Spec: &huge}), "hosts.count")
		empty := *alone
		empty.Tasks = nil
		assert.ErrorContains(t, h.reservations.understands(hostapi.ReserveInput{Spec: &empty}), "tasks")
	}
}

// A program does not take over runs if it would lose a part of their plans. Runs that are
// over do not count.
func TestPlansThatAreNotUnderstood(t *testing.T) {
	dir := t.TempDir()
	assert.NoError(t, UnderstandsPlans(dir))
	s, err := openPlans(dir)
	require.NoError(t, err)
	run := runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "r1"}
	_, err = s.update(run, func(*plan) (*plan, error) {
		return &plan{Run: run, Spec: &spec.RunSpec{Command: []string{"true"}}}, nil
	})
	require.NoError(t, err)
	require.NoError(t, UnderstandsPlans(dir))

	var text map[string]any
	raw, err := os.ReadFile(s.path(run))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &text))
	text["spec"].(map[string]any)["nice"] = 5
	write := func(name string) {
		t.Helper()
		raw, err := json.Marshal(text)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, raw, 0o600))
	}
	write(s.path(run))
	assert.EqualError(t, UnderstandsPlans(dir), `the stored description of run iris is not understood: unknown field "nice"`)
	text["released"] = true
	write(s.path(run))
	assert.NoError(t, UnderstandsPlans(dir))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "torn.json"), []byte("{"), 0o600))
	assert.NoError(t, UnderstandsPlans(dir), "that one is set aside")
}
