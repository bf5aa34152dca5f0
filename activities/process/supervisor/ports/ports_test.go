package ports

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/tests/must"
)

func TestChoosePorts(t *testing.T) {
	for _, c := range []struct {
		local     string
		low, high int
	}{
		{"32768\t60999\n", 20000, 32768},
		{"40000 65535", 20000, 40000},
		{"1024 60999", 61000, 65536},
		{"1024 65535", 20000, 32768},
		{"", 20000, 32768},
	} {
		low, high := choosePorts(c.local)
		require.Equal(t, []int{c.low, c.high}, []int{low, high}, strings.TrimSpace(c.local))
	}
}

func TestFreePortsAreLeasedToNobody(t *testing.T) {
	low, high := Range()
	first := 0
	for port := range Free() {
		assert.True(t, low <= port && port < high, port)
		_, err := bindPort(port)
		assert.ErrorIs(t, err, unix.EADDRINUSE, "it is kept meanwhile")
		if first != 0 {
			assert.NotEqual(t, first, port)
			break
		}
		first = port
	}
	fd := must.Get(bindPort(first))(t)
	require.NoError(t, unix.Close(fd))
}

func TestMorePortsThanAreFree(t *testing.T) {
	low, high := Range()
	p := &Ports{held: map[int]int{}}
	for port := low + 2; port < high; port++ {
		p.held[port] = -1
	}
	_, err := p.holdAny(3, nil)
	p.letGo([]int{low, low + 1})
	assert.ErrorIs(t, err, fault.ErrPortTaken)
	assert.ErrorContains(t, err, "of 3 ports are free between")
}
