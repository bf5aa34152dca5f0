package spec

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStopAfter(t *testing.T) {
	for _, c := range []struct {
		text  OnDisconnect
		hosts int
		want  time.Duration
	}{
		{"", 1, 0}, {"", 2, 2 * time.Minute}, {OnDisconnectKeep, 2, 0},
		{OnDisconnectStop(30 * time.Second), 1, 30 * time.Second}, {"30s", 5, 30 * time.Second},
	} {
		assert.Equal(t, c.want, (&RunSpec{OnDisconnect: c.text}).StopAfter(c.hosts), "%q on %d", c.text, c.hosts)
	}
}

func TestOnDisconnectTravels(t *testing.T) {
	for text, written := range map[OnDisconnect]string{OnDisconnectKeep: `"keep"`, "30s": `{"stop_after":"30s"}`} {
		b, err := json.Marshal(text)
		require.NoError(t, err)
		assert.JSONEq(t, written, string(b))
		var back OnDisconnect
		require.NoError(t, json.Unmarshal(b, &back))
		assert.Equal(t, text, back)
	}
}
