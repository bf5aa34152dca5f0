package resources

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/background"
)

// fakeSMI puts an nvidia-smi first on PATH that answers the two queries by scripts.
func fakeSMI(t *testing.T, gpus, apps string) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "nvidia-smi")
	script := "#!/bin/sh\ncase $1 in --query-gpu=*) " + gpus + ";; *) " + apps + ";; esac\n"
	require.NoError(t, os.WriteFile(program, []byte(script), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return program
}

func TestNVIDIAUse(t *testing.T) {
	two := "echo 'GPU-a, 80'; echo 'GPU-b, [N/A]'"
	for name, c := range map[string]struct {
		gpus, apps string
		want       []supervisor.GPUProcess
		err        bool
	}{
		"none":        {"true", "true", nil, false},
		"no apps":     {two, "echo 'No running processes found'", nil, false},
		"shared":      {two, "echo 'GPU-a, 17, 1024'; echo 'GPU-a, 18, 2048'", []supervisor.GPUProcess{{PID: 17, Memory: 1 << 30, Busy: 0.4}, {PID: 18, Memory: 2 << 30, Busy: 0.4}}, false},
		"two of it":   {"echo 'GPU-a, 80'; echo 'GPU-b, 50'", "echo 'GPU-a, 17, 1'; echo 'GPU-b, 17, 2'", []supervisor.GPUProcess{{PID: 17, Memory: 1 << 20, Busy: 0.8}, {PID: 17, Memory: 2 << 20, Busy: 0.5}}, false},
		"MIG":         {two, "echo 'GPU-b, 17, [N/A]'", []supervisor.GPUProcess{{PID: 17}}, false},
		"hidden pids": {two, "echo 'GPU-a, [Insufficient Permissions], 5'", nil, false},
		"a failure":   {"echo 'Unable to determine the device handle' >&2; exit 15", "true", nil, true},
		"nonsense":    {"printf '\\377\\n,\\n\"'", "echo a; echo 'b, 1'; echo ,,,", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := readNVIDIAUse(t.Context(), fakeSMI(t, c.gpus, c.apps))
			assert.Equal(t, c.err, err != nil, "%v", err)
			assert.Equal(t, c.want, got)
		})
	}
}

// looked is a supervisor that counts looks.
type looked struct {
	supervisor.API
	looks chan supervisor.SampleRequest
	reply supervisor.SampleReply
	err   error
}

func (s *looked) Sample(_ context.Context, r supervisor.SampleRequest) (supervisor.SampleReply, error) {
	s.looks <- r
	return s.reply, s.err
}

// All heartbeats share a sample, and a host with slow sampling is sampled less often.
func TestSamplesAreShared(t *testing.T) {
	t.Setenv("PATH", "")
	ref := supervisor.ProcessRef{Number: 3}
	s := &looked{looks: make(chan supervisor.SampleRequest), reply: supervisor.SampleReply{Samples: []supervisor.Sample{{Process: ref, RSS: 5}}}}
	h := &Sampler{Supervisor: s, Log: zap.NewNop(), Group: background.NewGroup()}
	t.Cleanup(h.Group.Close)
	idle := func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return !h.looking
	}
	for range 3 {
		_, _, known := h.Of(ref)
		assert.False(t, known)
	}
	<-s.looks
	require.Eventually(t, idle, time.Minute, time.Millisecond)
	got, _, known := h.Of(ref)
	assert.True(t, known)
	assert.EqualValues(t, 5, got.RSS)
	_, _, known = h.Of(supervisor.ProcessRef{Number: 4})
	assert.False(t, known)
	assert.True(t, idle(), "it was looked at a moment ago")

	h.begun = time.Now().Add(-sampleEvery)
	h.pause = time.Hour
	_, _, _ = h.Of(ref)
	assert.True(t, idle(), "looking costs too much")
	h.pause = 0
	s.err = supervisor.ErrLost
	_, _, _ = h.Of(ref)
	<-s.looks
	require.Eventually(t, idle, time.Minute, time.Millisecond)
	_, _, known = h.Of(ref)
	assert.True(t, known, "what was known before")
	assert.False(t, h.Silent())
	s.err = context.DeadlineExceeded
	h.begun = time.Now().Add(-sampleEvery)
	_, _, _ = h.Of(ref)
	<-s.looks
	require.Eventually(t, h.Silent, time.Minute, time.Millisecond)
	s.err = nil
	h.begun = time.Now().Add(-sampleEvery)
	_, _, _ = h.Of(ref)
	<-s.looks
	require.Eventually(t, func() bool { return !h.Silent() }, time.Minute, time.Millisecond, "it answers again")
}

func TestTheFirstSampleHasTheGPUs(t *testing.T) {
	fakeSMI(t, "echo 'GPU-a, 80'", "echo 'GPU-a, 17, 1024'")
	s := &looked{looks: make(chan supervisor.SampleRequest)}
	h := &Sampler{Supervisor: s, Log: zap.NewNop(), Group: background.NewGroup()}
	t.Cleanup(h.Group.Close)
	_, _, _ = h.Of(supervisor.ProcessRef{})
	assert.Equal(t, []supervisor.GPUProcess{{PID: 17, Memory: 1 << 30, Busy: 0.8}}, (<-s.looks).GPUs)
}
