package activities

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A run gets the final place of its logs, even if the host writes them to another directory.
func TestWhereCopiedLogsLie(t *testing.T) {
	for name, c := range map[string]struct{ copiedTo, inSpec, root, told string }{
		"on the host":                       {"", "", "/host/logs", "/host/logs/run/attempt_0/1"},
		"on the host, where the spec says":  {"", "/shared", "/shared", "/shared/run/attempt_0/1"},
		"copied":                            {"/owner/logs", "", "/host/logs", "/owner/logs/run/attempt_0/1"},
		"copied to where the spec says":     {"/owner/logs", "/mine", "/host/logs", "/mine/run/attempt_0/1"},
		"shown, and kept nowhere by a spec": {"/owner/logs", spec.NullDir, "/host/logs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := assemble(&core{Config: Config{LogRoot: "/host/logs", LogsCopiedTo: c.copiedTo}})
			s := &spec.RunSpec{Logs: spec.Logs{Dir: c.inSpec}}
			assert.Equal(t, c.root, h.ships.logRoot(s))
			p := &plan{Spec: s, LogRoot: h.ships.logRoot(s)}
			assert.Equal(t, c.told, h.told(p, p.LogRoot+"/run/attempt_0/1"))
		})
	}
	h := assemble(&core{Config: Config{LogsCopiedTo: "/owner/logs"}})
	assert.Equal(t, "/elsewhere/x", h.told(nil, "/elsewhere/x"), "of a run without a plan nothing is known")
}

// An address that is passed to another host can be reached from there.
func TestAddressesForOtherHosts(t *testing.T) {
	plain, reached := assemble(&core{Config: Config{Name: "a"}}), assemble(&core{Config: Config{Name: "a", Advertise: "10.0.0.2"}})
	for _, c := range []struct {
		pinned         string
		alone          bool
		plain, reached string
	}{
		{"", true, "127.0.0.1:7", "127.0.0.1:7"},
		{"", false, "a:7", "10.0.0.2:7"},
		{"a", false, "a:7", "10.0.0.2:7"},
		{"a", true, "a:7", "10.0.0.2:7"},
		{"localhost", true, "localhost:7", "localhost:7"},
		{"localhost", false, "a:7", "10.0.0.2:7"},
		{"127.0.0.1", false, "a:7", "10.0.0.2:7"},
		{"::1", false, "a:7", "10.0.0.2:7"},
	} {
		assert.Equal(t, c.plain, plain.reservations.address(c.pinned, 7, c.alone), "%+v", c)
		assert.Equal(t, c.reached, reached.reservations.address(c.pinned, 7, c.alone), "%+v", c)
	}
}
