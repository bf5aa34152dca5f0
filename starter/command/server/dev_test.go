package server

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/tests/must"
)

// Dev replaces a port that another program uses with the next free one, unless a flag names it.
func TestAvoidTaken(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	a := &cli.App{}
	a.Global.StateDir = t.TempDir()
	d := dev{App: a, port: taken, uiPort: 0}
	d.avoidTaken(t.Context())
	assert.Greater(t, d.port, taken)
	assert.Zero(t, d.uiPort)
	assert.Equal(t, fmt.Sprintf("%-17sis already used by another program: the server uses port %d\n", fmt.Sprintf("Port %d", taken), d.port), d.moved)

	d = dev{App: a, port: taken, portGiven: true}
	d.avoidTaken(t.Context())
	assert.Equal(t, taken, d.port)
	assert.Empty(t, d.moved)
}
