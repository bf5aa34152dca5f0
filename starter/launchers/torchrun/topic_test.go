package torchrun

import (
	goflag "flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = goflag.Bool("update", false, "write the table of the topic anew")

// The topic lists the flags as they are.
func TestTopic(t *testing.T) {
	const path, head = "../../help/topics/start/torchrun.md", "| flag | here |\n| --- | --- |\n"
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(b), head)
	require.True(t, found)
	var table strings.Builder
	for _, f := range flags {
		name := "--" + f.name
		if f.short != "" {
			name = "-" + f.short + ", " + name
		}
		if f.value != "" {
			name += " " + f.value
		}
		text := f.here
		if text == "" {
			text = "not needed: " + f.unneeded
		}
		table.WriteString("| `" + strings.ReplaceAll(name, "|", "\\|") + "` | " + text + " |\n")
	}
	after := rest
	for strings.HasPrefix(after, "| ") {
		_, after, _ = strings.Cut(after, "\n")
	}
	want := before + head + table.String() + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(b), "run the test with -update")
}
