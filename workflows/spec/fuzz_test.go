package spec

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzDecode checks that no document makes the reader panic, that every refusal is a list of
// problems, and that an accepted document stays accepted when it is written, keeps its meaning,
// and is valid by the schema.
func FuzzDecode(f *testing.F) {
	for _, kind := range []string{"good", "bad"} {
		for _, d := range documents(f, kind) {
			f.Add(d.data)
		}
	}
	schema := resolvedSchema(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, decode := range []func([]byte, ...func(*RunSpec)) (*RunSpec, error){Decode, DecodeYAML} {
			s, err := decode(data)
			if err != nil {
				var invalid *InvalidSpecError
				require.ErrorAs(t, err, &invalid)
				require.NotEmpty(t, invalid.Problems)
				_, err := json.Marshal(invalid)
				require.NoError(t, err)
				continue
			}
			require.NoError(t, s.Validate())
			require.NoError(t, s.WithDefaults().Validate())
			requireStable(t, s)
			require.NoError(t, schema.Validate(jsonValue(t, s)))
		}
	})
}

func FuzzParseStd(f *testing.F) {
	for _, text := range []string{"3", "0:1,1-7:3", "10:1", "0:1,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseStd(text)
		if err == nil {
			require.Regexp(t, stdPattern, text, "what is read, a schema accepts")
		}
		for rank := range 12 {
			s := m.Of(rank)
			require.True(t, s >= StdNone && s <= StdAll)
		}
	})
}

func FuzzSplitAddress(f *testing.F) {
	for _, text := range []string{"h:1", "[::1]:2", "h", "[", "::1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, addr string) {
		host, port, err := SplitAddress(addr)
		if err == nil {
			require.NotEmpty(t, host)
			require.NotContains(t, host, "/")
			require.True(t, port >= 0 && port < 65536)
		}
	})
}
