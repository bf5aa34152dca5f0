package hostcheck

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/xid"
)

type clockFunc = func(context.Context) (ahead, doubt time.Duration, err error)

func clockOf(ahead, doubt time.Duration, err error) clockFunc {
	return func(context.Context) (time.Duration, time.Duration, error) { return ahead, doubt, err }
}

func stuckClock(release chan struct{}) clockFunc {
	return func(context.Context) (time.Duration, time.Duration, error) {
		<-release
		return 0, 0, nil
	}
}

// said returns the text of an error, or "".
func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	assert.NoError(t, disk([]string{dir, filepath.Join(dir, "not", "made")}, "1KiB"))
	assert.ErrorContains(t, disk([]string{dir}, "8000000GiB"), "MiB left, less than 8000000GiB")
	assert.ErrorContains(t, disk([]string{"/dev/null/x"}, "1KiB"), "not a directory")
}

func TestMemory(t *testing.T) {
	assert.NoError(t, memory("/", "1KiB"))
	assert.ErrorContains(t, memory("/", "8000TiB"), "MiB of memory are available, less than 8000TiB")
	root := t.TempDir()
	assert.Error(t, memory(root, "1KiB"))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "proc"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "proc/meminfo"), []byte("MemTotal: 9 kB\nMemAvailable:   2 kB\n"), 0o600))
	mc := filepath.Join(root, "sys/devices/system/edac/mc/mc0")
	require.NoError(t, os.MkdirAll(mc, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(mc, "ue_count"), []byte("0\n"), 0o600))
	assert.NoError(t, memory(root, "1KiB"))
	require.NoError(t, os.WriteFile(filepath.Join(mc, "ue_count"), []byte("3\n"), 0o600))
	assert.EqualError(t, memory(root, "1KiB"), "3 memory errors since the boot could not be corrected (mc0)")
}

func TestClock(t *testing.T) {
	for _, c := range []struct {
		clock clockFunc
		want  string
	}{
		{clockOf(900*time.Millisecond, 0, nil), ""},
		{clockOf(2*time.Second, 1500*time.Millisecond, nil), ""},
		{clockOf(2*time.Second, time.Millisecond, nil), "the clock is 2s behind the server's, more than 1s"},
		{clockOf(-time.Minute, time.Millisecond, nil), "the clock is 1m0s ahead of the server's, more than 1s"},
		{clockOf(time.Hour, 0, errors.New("the server is away")), ""},
		{nil, ""},
	} {
		assert.Equal(t, c.want, said(clock(t.Context(), c.clock, "1s")))
	}
}

func TestLink(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	there := l.Addr().String()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	away := gone.Addr().String()
	require.NoError(t, gone.Close())
	defer l.Close()
	for _, c := range []struct {
		others map[string]string
		err    error
		want   string
	}{
		{nil, nil, ""},
		{map[string]string{"a": away, "b": there}, nil, ""},
		{map[string]string{"a": away, "b": away}, nil, "no connection to a, b: connection refused"},
		{nil, errors.New("the server is away"), ""},
	} {
		got := link(t.Context(), func(context.Context) (map[string]string, error) { return c.others, c.err })
		assert.Equal(t, c.want, said(got))
	}
}

func TestBadMemory(t *testing.T) {
	for _, c := range []struct {
		row  []string
		want string
	}{
		{[]string{"0", "0", "No", "No"}, ""},
		{[]string{"0", "[N/A]", "[N/A]", "[N/A]"}, ""},
		{[]string{"0", "[Not Supported]", "0", "0"}, ""},
		{[]string{"3", "1", "0", "0"}, "GPU 3 has had 1 memory error that could not be corrected (ECC); reset it"},
		{[]string{"3", "0", "Yes", "No"}, "GPU 3 has a row of memory that cannot be replaced; have it exchanged"},
		{[]string{"3", "0", "0", "1"}, "GPU 3 has a row of memory to replace; reset it"},
		{[]string{"a message"}, ""},
	} {
		assert.Equal(t, c.want, said(badMemory([][]string{c.row})), c.row)
	}
}

func TestLastXid(t *testing.T) {
	now := time.Now()
	at := func(age time.Duration, number int) xid.Error {
		return xid.Error{Number: number, GPU: "0000:3b:00", PID: 1, At: now.Add(-age)}
	}
	assert.EqualError(t, lastXid([]xid.Error{at(time.Minute, 79), at(time.Second, 31)}, now), "the GPU at 0000:3b:00 had Xid 79 in the last hour")
	assert.NoError(t, lastXid([]xid.Error{at(2*time.Hour, 79), at(time.Minute, 31)}, now), "one is old, the other of a program")
}
