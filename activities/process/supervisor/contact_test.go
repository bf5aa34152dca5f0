package supervisor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// contact returns a contact that is over after the given time.
func contact(after, grace time.Duration) Contact {
	return Contact{Until: BootNanos() + after.Nanoseconds(), Signal: sigTERM, Grace: grace}
}

func (h *host) startIn(c Contact, task, script string) Process {
	h.t.Helper()
	r := h.request(task, 0, script)
	r.Contact = c
	p, err := h.client.Start(h.ctx(), r)
	require.NoError(h.t, err)
	return p
}

func (h *host) renew(task string, fence Fence, after time.Duration) error {
	return h.client.Renew(h.ctx(), RenewRequest{Key: keyOf(task), Fence: fence, Until: BootNanos() + after.Nanoseconds()})
}

// A process whose contact is not renewed ends, in any state of the side, even if there is none.
func TestContactThatIsNotRenewed(t *testing.T) {
	h := newHost(t, nil)
	h.startIn(contact(300*time.Millisecond, long), "polite", "exec sleep 1000")
	h.startIn(contact(300*time.Millisecond, 100*time.Millisecond), "deaf", "trap '' TERM; while :; do sleep 0.01; done")
	h.startIn(Contact{}, "free", "exec sleep 1000")
	kept := h.startIn(contact(400*time.Millisecond, long), "kept", "exec sleep 1000")
	require.NoError(t, h.renew("kept", Fence{Attempt: 1}, time.Hour))
	require.NoError(t, h.renew("kept", Fence{Attempt: 1}, time.Millisecond), "it is never made shorter")

	e := h.wait("polite", 0)
	require.Equal(t, ReasonCutOff, e.Reason)
	require.Equal(t, -sigTERM, e.Code)
	e = h.wait("deaf", 0)
	require.Equal(t, ReasonCutOff, e.Reason)
	require.Equal(t, -sigKILL, e.Code)
	require.False(t, gone(kept.PID))
	require.ElementsMatch(t, []string{"free", "kept"}, h.stop(sigKILL, 0))
}

// An old commander, such as one that was frozen while the server gave it up, extends no
// contact, and no process is started on an answer that is too old.
func TestContactOfAnOldCommander(t *testing.T) {
	h := newHost(t, nil)
	r := h.request("late", 0, "exec sleep 1000")
	r.Contact = Contact{Until: BootNanos() - 1, Signal: sigTERM}
	_, err := h.client.Start(h.ctx(), r)
	require.ErrorIs(t, err, ErrCutOff)
	all, err := h.client.Processes(h.ctx(), testRun)
	require.NoError(t, err)
	require.Empty(t, all.Processes)

	h.startIn(contact(500*time.Millisecond, long), "worker-0", "exec sleep 1000")
	_, err = h.client.Attach(h.ctx(), AttachRequest{Key: keyOf("worker-0"), Fence: Fence{Attempt: 2}})
	require.NoError(t, err)
	require.ErrorIs(t, h.renew("worker-0", Fence{Attempt: 1}, time.Hour), ErrFenced)
	require.Equal(t, ReasonCutOff, h.wait("worker-0", 0).Reason)
	require.NoError(t, h.renew("worker-0", Fence{Attempt: 2}, time.Hour), "there is nothing left to renew")
	require.NoError(t, h.renew("worker-7", Fence{Attempt: 1}, time.Hour))
}

// After a machine was suspended, processes that should be gone by now get no grace.
func TestNext(t *testing.T) {
	c := Contact{Until: 100, Grace: 50}
	for _, k := range []struct {
		name string
		p    process
		want int64
	}{
		{"free", process{}, 0},
		{"max_run_time", process{killAt: 7}, 7},
		{"in contact", process{contact: c}, 100},
		{"in contact, max_run_time first", process{contact: c, killAt: 7}, 7},
		{"in contact, max_run_time later", process{contact: c, killAt: 700}, 100},
		{"cut off", process{contact: c, cutOff: true}, 150},
		{"cut off, max_run_time first", process{contact: c, cutOff: true, killAt: 120}, 120},
		{"killed", process{contact: c, cutOff: true, killAt: 7, killed: time.Now()}, 0},
	} {
		assert.Equal(t, k.want, k.p.next(), k.name)
	}
	assert.True(t, c.over(100))
	assert.False(t, c.over(99))
	assert.False(t, Contact{}.over(1))
}
