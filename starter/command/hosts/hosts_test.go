package hosts

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// Requests about hosts also answer in JSON on request.
func TestPrintService(t *testing.T) {
	for _, c := range []struct {
		given     serviceOfHost
		asJSON    bool
		out, said string
	}{
		{serviceOfHost{Host: "gpu-3", Cordoned: true}, false, "", "clusterrun: host gpu-3 gets no new tasks\n"},
		{serviceOfHost{Host: "gpu-3", Cordoned: true}, true, `{"host": "gpu-3", "cordoned": true, "draining": false}`, ""},
		{serviceOfHost{Host: "gpu-3", Cordoned: true, Draining: true}, true, `{"host": "gpu-3", "cordoned": true, "draining": true}`, ""},
		{serviceOfHost{Host: "gpu-3"}, true, `{"host": "gpu-3", "cordoned": false, "draining": false}`, ""},
	} {
		var out, said bytes.Buffer
		a := &cli.App{Out: &out, Err: &said}
		a.Global.JSON = c.asJSON
		require.NoError(t, printService(a, c.given, "host gpu-3 gets no new tasks"))
		assert.Equal(t, c.said, said.String())
		if !c.asJSON {
			assert.Empty(t, out.String())
			continue
		}
		assert.JSONEq(t, c.out, out.String())
	}
}
