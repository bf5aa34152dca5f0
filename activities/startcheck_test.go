package activities

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// `start RUN extra-0 -- /no/such/program` used to print "started", and then the whole
// run failed.
func TestAStartThatWouldFailIsRefusedBeforehand(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("#! /no/such/interpreter -u\n"), 0o700))
	carriage, byEnv := filepath.Join(t.TempDir(), "carriage"), filepath.Join(t.TempDir(), "by-env")
	require.NoError(t, os.WriteFile(carriage, []byte("#!/bin/sh\r\necho\r\n"), 0o700))
	require.NoError(t, os.WriteFile(byEnv, []byte("#!/usr/bin/env python3\r\n"), 0o700))
	for name, c := range map[string]struct {
		task spec.Task
		want string
	}{
		"a line for a shell": {spec.Task{Type: "extra", Command: []string{"echo $RANK && echo it's"}}, "echo $RANK && echo it's on host host-a: command not found (extra-0); that needs a shell: sh -c 'echo $RANK && echo it'\\''s'"},
		"an operator":        {spec.Task{Type: "extra", Command: []string{"true|cat"}}, `command not found (extra-0); that needs a shell: sh -c 'true|cat'`},
		"a builtin":          {spec.Task{Type: "extra", Command: []string{"cd", "/tmp"}}, `command not found (extra-0); that needs a shell: sh -c 'cd /tmp'`},
		"no such script":     {spec.Task{Type: "extra", Command: []string{"/no/train.py"}}, "/no/train.py on host host-a: command not found (extra-0); give a path"},
		"carriage return":    {spec.Task{Type: "extra", Command: []string{carriage}}, "its first line ends with a carriage return, as in Windows files (extra-0); take them out of the file: sed -i 's/\\r$//' " + carriage},
		"carriage by env":    {spec.Task{Type: "extra", Command: []string{byEnv}}, "its first line ends with a carriage return"},
		"well":               {spec.Task{Type: "extra", Command: []string{"true"}}, ""},
		"no such program":    {spec.Task{Type: "extra", Command: []string{"/no/such/program"}}, "command[0]: /no/such/program on host host-a: command not found (extra-0)"},
		"no interpreter":     {spec.Task{Type: "extra", Command: []string{script}}, "command[0]: " + script + " on host host-a: its interpreter /no/such/interpreter does not exist (extra-0); install it"},
		"no such directory":  {spec.Task{Type: "extra", Command: []string{"true"}, Dir: "/nonexistent"}, "dir: working directory /nonexistent on host host-a: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			err := newControl(t).checkStart(hostapi.CheckStartInput{Task: c.task})
			checkRefusal(t, err, c.want)
		})
	}
	t.Run("of another generation", func(t *testing.T) {
		err := newControl(t).checkStart(hostapi.CheckStartInput{Group: spec.Group{Generation: 1}, Task: spec.Task{Type: "extra", Command: []string{"true"}}})
		checkRefusal(t, err, "host host-a no longer has this run")
	})
	// The supervisor of this host panics when it is asked to stop something.
	t.Run("a restart leaves the task running", func(t *testing.T) {
		c := newControl(t)
		_, err := c.host.plans.change(c.host.plans.all()[0].Run, func(p *plan) error {
			p.Added = map[string]addedTask{"gone-0": {Task: spec.Task{Type: "gone", Command: []string{"/no/such/program"}}}}
			return nil
		})
		require.NoError(t, err)
		_, err = c.env.ExecuteActivity(c.host.RestartTasks, spec.HostRequest[spec.TaskRequest]{Request: spec.TaskRequest{Tasks: []string{"gone-0"}}})
		checkRefusal(t, err, "/no/such/program on host host-a: command not found (gone-0)")
	})
}

func (c *control) checkStart(in hostapi.CheckStartInput) error {
	_, err := c.env.ExecuteActivity(c.host.CheckStart, in)
	return err
}

func checkRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	assert.Equal(t, spec.ErrInvalidRequest, app.Type())
	assert.True(t, app.NonRetryable())
	assert.Contains(t, app.Message(), want)
}
