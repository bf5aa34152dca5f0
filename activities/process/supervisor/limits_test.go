package supervisor

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An error at the limit of open files names the limit, and a request that the limit can never
// allow is refused.
func TestLimitOfOpenFilesIsNamed(t *testing.T) {
	const named = "a process may have 40 open files here; raise that limit: ulimit -n"
	h := newHost(t, func(r *role) { r.Files = "-n 40" })
	lease := func(group, count int) error {
		_, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun, Group: group, Count: count})
		return err
	}
	err := lease(0, 25)
	require.ErrorIs(t, err, ErrLimit)
	require.ErrorContains(t, err, named)

	require.NoError(t, lease(0, 20))
	err = lease(1, 20)
	require.ErrorContains(t, err, named, "and not that so many ports are not free")
	require.NotErrorIs(t, err, ErrLimit, "without the others, it could be had")
	group := 2
	for ; err != nil || lease(group, 1) == nil; group++ {
		err = nil
	}
	require.Greater(t, group, 3, "the ports of the lease that failed are free again")

	p, err := h.client.Start(h.ctx(), h.request("starved", 0, "exit 0"))
	if err != nil {
		require.ErrorIs(t, err, ErrJournal)
		require.ErrorContains(t, err, named)
		return
	}
	require.NotNil(t, p.Exit)
	require.Contains(t, p.Exit.StartError, named)
}

// The supervisor raises its limit of open files to the hard limit. Its tasks have the limit
// that its owner set.
func TestSoftLimitIsRaisedAndNotLeaked(t *testing.T) {
	h := newHost(t, func(r *role) { r.Files = "-Sn 40" })
	_, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun, Count: 60})
	require.NoError(t, err)
	h.sh("asks", 0, "ulimit -Sn >$D/limit")
	require.Zero(t, h.wait("asks", 0).Code)
	raw, err := os.ReadFile(h.file("limit"))
	require.NoError(t, err)
	require.Equal(t, "40", strings.TrimSpace(string(raw)))
}
