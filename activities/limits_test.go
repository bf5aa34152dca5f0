package activities

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// limited is a supervisor that can only limit memory.
type limited struct{ supervisor.API }

func (limited) Controllers(context.Context) (supervisor.ControllersReply, error) {
	return supervisor.ControllersReply{Controllers: []string{"memory"}, Why: "there is memory only"}, nil
}

func TestPreflightRefusesLimitsThatCannotBeEnforced(t *testing.T) {
	h := assemble(&core{Config: Config{Name: "host-a", Supervisor: limited{}}})
	var files unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &files))
	task := func(typ string) spec.Task { return spec.Task{Type: typ, Command: []string{"true"}, Dir: "/"} }
	s := &spec.RunSpec{
		Limits: spec.Limits{Memory: "1GiB", PIDs: new(100), NoFile: new(int(files.Max))},
		Tasks:  []spec.TaskGroup{{Type: "ps", Limits: spec.Limits{NoFile: new(int(files.Max) + 1), CPUs: new(2)}}, {Type: "worker"}},
	}
	var texts []string
	for _, p := range h.checks.preflight(runkey.Run{}, s, nil, []spec.Task{task("ps"), task("worker")}) {
		texts = append(texts, p.String())
	}
	assert.Equal(t, []string{
		"limits.cpus: host host-a cannot enforce it: there is memory only (ps-0); or leave the limit out",
		"limits.pids: host host-a cannot enforce it: there is memory only (ps-0 and 1 more); or leave the limit out",
		fmt.Sprintf("limits.nofile: the host worker on host host-a may itself have at most %d (ps-0); raise its hard limit (ulimit -Hn, or LimitNOFILE of its service), or ask for less", files.Max),
	}, texts)
	assert.Equal(t, supervisor.Limits{Memory: 1 << 30, CPUs: 2, PIDs: 100, Rlimits: []supervisor.Rlimit{{Resource: unix.RLIMIT_NOFILE, Value: files.Max + 1}}}, limitsOf(s, task("ps")))
	none := limitsOf(&spec.RunSpec{Limits: spec.Limits{Core: spec.CoreNone}}, task("worker"))
	assert.Equal(t, []supervisor.Rlimit{{Resource: unix.RLIMIT_CORE}}, none.Rlimits)
	all := limitsOf(&spec.RunSpec{Limits: spec.Limits{Core: spec.CoreUnlimited}}, task("worker"))
	assert.Equal(t, []supervisor.Rlimit{{Resource: unix.RLIMIT_CORE, Value: unix.RLIM_INFINITY}}, all.Rlimits)
}
