package proc_test

import (
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
)

// A server can find out who opened a connection.
func TestPeerUser(t *testing.T) {
	l := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer l.Close()
	c := must.Get(net.Dial("tcp4", l.Addr().String()))(t)
	defer c.Close()
	at := must.Get(l.Accept())(t)
	defer at.Close()
	assert.Equal(t, strconv.Itoa(os.Getuid()), proc.PeerUser(at.RemoteAddr().String(), at.LocalAddr()))
	require.NoError(t, c.Close())
	for remote, local := range map[string]net.Addr{"127.0.0.1:1": l.Addr(), "[::1]:1": l.Addr(), "": l.Addr(), "192.0.2.1:1": nil} {
		assert.Empty(t, proc.PeerUser(remote, local), remote)
	}
}
