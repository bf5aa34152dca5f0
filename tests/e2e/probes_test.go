package e2e

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// probed returns a host worker's answer to a probe. The code is 0 if there is no answer.
func probed(address string) (int, string) {
	r, err := http.Get("http://" + address + "/ready")
	if err != nil {
		return 0, ""
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	return r.StatusCode, strings.TrimSpace(string(text))
}

// Probes of host workers and controllers succeed when they serve, but not before there is a
// server.
func TestReadyIsServed(t *testing.T) {
	t.Parallel()
	host, controller := harness.FreeAddress(t), harness.FreeAddress(t)
	awaits := func(address string, status int) {
		t.Helper()
		harness.Eventually(t, http.StatusText(status)+" at "+address, func() bool {
			got, _ := probed(address)
			return got == status
		})
	}
	s := harness.StartServer(t, "--headless")
	s.Kill()
	start := func(role, address string) *harness.Process {
		return harness.Start(t, t.TempDir(), harness.Env(t.TempDir(), "TEMPORAL_ADDRESS="+s.Address), harness.Clusterrun(t),
			"worker", "--role", role, "--metrics", address)
	}
	for role, address := range map[string]string{"host": host, "controller": controller} {
		p := start(role, address)
		defer func() {
			p.Kill(syscall.SIGTERM)
			p.ExitCode()
		}()
		awaits(address, http.StatusServiceUnavailable)
	}
	_, text := probed(host)
	assert.Equal(t, "not ready: the queues of this host worker are not served", text)

	s.Restart()
	awaits(controller, http.StatusOK)
	awaits(host, http.StatusOK)
	_, text = probed(host)
	assert.Equal(t, "ready", text)
}
