package worker

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workers/connect"
)

// A client on the server's machine reads the files there.
func TestWhereAHostWorkerListens(t *testing.T) {
	for _, c := range []struct{ given, server, want string }{
		{"", "127.0.0.1:7233", ""},
		{"", "localhost:7233", ""},
		{"", "temporal.example:7233", ":0"},
		{"off", "temporal.example:7233", ""},
		{":7070", "127.0.0.1:7233", ":7070"},
		{"10.0.0.7", "temporal.example:7233", "10.0.0.7"},
	} {
		got := must.Get(listenAddress(c.given, cli.Server{Options: connect.Options{Address: c.server}}))(t)
		assert.Equal(t, c.want, got, "%+v", c)
	}
}
