package spec

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A value takes no more as JSON than is counted for it: the result of a round would be too
// large for the server.
func FuzzBarrierValueSize(f *testing.F) {
	for _, value := range []string{"", "plain text", "\x00\x01\n\t", `"\<>&`, "é\u2028日本", "\xff\xfe", "\x7f"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		b, err := json.Marshal(value)
		require.NoError(t, err)
		require.LessOrEqual(t, len(b)-len(`""`), BarrierValueSize(value))
	})
}
