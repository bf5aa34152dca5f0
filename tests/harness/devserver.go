package harness

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// StartDevServer starts the temporal CLI's development server, with dynamic configuration from
// the test ("key=value"). It skips the test without the CLI.
func StartDevServer(t testing.TB, dynamicConfig ...string) *Server {
	t.Helper()
	cli := TemporalCLI(t)
	s := &Server{t: t, dir: t.TempDir(), Address: FreeAddress(t)}
	_, port, err := net.SplitHostPort(s.Address)
	require.NoError(t, err)
	argv := []string{cli, "server", "start-dev", "--headless", "--port", port}
	for _, value := range dynamicConfig {
		argv = append(argv, "--dynamic-config-value", value)
	}
	s.process = Start(t, s.dir, Env(s.dir), argv...)
	s.awaitHealth()
	return s
}

// awaitHealth waits until the server serves.
func (s *Server) awaitHealth() {
	s.t.Helper()
	Eventually(s.t, "the server serves", func() bool {
		require.False(s.t, s.process.Exited(), "the server ended: %s", s.process.Stdout()+s.process.Stderr())
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c, err := client.DialContext(ctx, client.Options{HostPort: s.Address, Logger: sdklog.NewStructuredLogger(discard())})
		if err != nil {
			return false
		}
		defer c.Close()
		_, err = c.CheckHealth(ctx, nil)
		return err == nil
	})
}
