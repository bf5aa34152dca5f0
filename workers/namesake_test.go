package workers

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
)

func TestIdentity(t *testing.T) {
	assert.Equal(t, "f00", instanceOf(identity("host-a", "f00")))
	assert.Equal(t, "f00", instanceOf(identity("a/b@c", "f00")), "whatever a host is called")
	assert.Equal(t, "1@elsewhere", instanceOf("1@elsewhere"), "of another program")
}

// A name is taken if another instance polls its queue and answers on its own.
func TestNamesakes(t *testing.T) {
	answers := func(string) error { return nil }
	silent := func(string) error { return errors.New("timeout") }
	now := time.Now()
	mine, other, third := identity("host-a", "mine"), identity("host-a", "other"), identity("host-a", "third")
	for name, c := range map[string]struct {
		polled map[string]time.Time
		probe  func(string) error
		probed []string
		taken  string
	}{
		"nobody polls":             {map[string]time.Time{}, answers, nil, ""},
		"the server does not tell": {nil, answers, nil, ""},
		"an earlier side of it":    {map[string]time.Time{mine: now, "1@host-a/mine": now}, answers, nil, ""},
		"another that answers":     {map[string]time.Time{mine: now, other: now}, answers, []string{"q/host/host-a/other"}, "other"},
		"another that is gone":     {map[string]time.Time{mine: now, other: now.Add(-pollLasts - time.Second)}, answers, nil, ""},
		"another that was killed":  {map[string]time.Time{other: now}, silent, []string{"q/host/host-a/other"}, ""},
		"one that refuses": {map[string]time.Time{other: now}, func(string) error {
			return temporal.NewApplicationError("no activity Probe", "")
		}, []string{"q/host/host-a/other"}, "other"},
		"two sides of another": {map[string]time.Time{other: now, "1@host-a/other": now}, silent, []string{"q/host/host-a/other"}, ""},
		"an old server":        {map[string]time.Time{other: now}, nil, []string{"q/host/host-a/other"}, ""},
		"one of two answers": {map[string]time.Time{other: now, third: now}, func(queue string) error {
			if queue == "q/host/host-a/third" {
				return nil
			}
			return errors.New("timeout")
		}, nil, "third"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeServer{t: t, polled: c.polled, probe: c.probe}
			err := checkName(t.Context(), f, "q", "host-a", "mine")
			if c.taken == "" {
				require.NoError(t, err)
			} else {
				var taken *NamesakeError
				require.ErrorAs(t, err, &taken)
				assert.Equal(t, NamesakeError{Host: "host-a", Instance: c.taken, Queue: "q"}, *taken)
				assert.Contains(t, err.Error(), "--host-name")
			}
			if c.taken != "third" {
				assert.Equal(t, c.probed, f.probed)
			}
		})
	}
}

// A host worker that is about to start has the instance of its state directory.
func TestCheckName(t *testing.T) {
	o := Options{StateDir: t.TempDir(), Host: "host-a", Queue: "q"}
	f := &fakeServer{t: t, polled: map[string]time.Time{identity("host-a", "mine"): time.Now()}, probe: func(string) error { return nil }}
	var taken *NamesakeError
	require.ErrorAs(t, o.CheckName(t.Context(), f), &taken, "a new state directory is another host worker's")
	require.NoError(t, os.WriteFile(filepath.Join(o.StateDir, "instance"), []byte("mine\n"), 0o600))
	require.NoError(t, o.CheckName(t.Context(), f))
	require.EqualError(t, Options{}.CheckName(t.Context(), f), "a host worker needs a state directory")
}

// One whose name is taken has it when the other one ends.
func TestANameThatBecomesFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{t: t, polled: map[string]time.Time{identity("host-a", "other"): time.Now()}, probe: func(string) error { return nil }}
		free := make(chan time.Time, 1)
		began := time.Now()
		go func() {
			f.side().awaitName(t.Context())
			free <- time.Now()
		}()
		time.Sleep(2*namesakeAgain + time.Millisecond)
		f.mu.Lock()
		assert.Len(t, f.probed, 3)
		f.probe = func(string) error { return errors.New("timeout") }
		f.mu.Unlock()
		assert.Equal(t, began.Add(3*namesakeAgain), <-free)
	})
}
