package mpirun

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// ours lists the flags of the tests' command that take values.
var ours = []string{"np", "name", "log-dir", "per-host", "nnodes", "export", "host", "timeout"}

// TestScripts runs testdata: command lines of other launchers, and their translations. `go test
// -run Scripts -rewrite` rewrites the answers.
func TestScripts(t *testing.T) {
	tested := map[string]bool{}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			for line := range strings.Lines(d.Input) {
				var args []string
				for _, arg := range regexp.MustCompile(`('[^']*'|[^' ])+`).FindAllString(strings.TrimSpace(line), -1) {
					args = append(args, strings.ReplaceAll(arg, "'", ""))
				}
				for _, arg := range args[1:] {
					name, _, _ := strings.Cut(arg, "=")
					tested[name] = true
				}
				b.WriteString(translated(args))
			}
			return b.String()
		})
	})
	for _, w := range words {
		for _, name := range w.names {
			assert.True(t, tested[name], "a script has %s", name)
		}
	}
}

func translated(args []string) string {
	l, err := Translate(args[1:], Command{
		Has: func(name string) bool { return slices.Contains(ours, name) },
		TakesValue: func(flag string) bool {
			return flag == "-x" || flag == "-H" || slices.Contains(ours, strings.TrimPrefix(flag, "--"))
		},
		Fleet: args[0] == "submit",
	})
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	text := strings.Join(append([]string{args[0]}, l.Args...), " ")
	for _, note := range l.Notes {
		text += "\nsays: " + note
	}
	return text + "\n"
}

// reference returns the table of the words in Markdown.
func reference() string {
	var b strings.Builder
	b.WriteString("| flag | of | here |\n| --- | --- | --- |\n")
	for _, w := range words {
		text := w.here
		switch {
		case w.unneeded != "":
			text = "ignored: " + w.unneeded
		case w.instead != "":
			text = "refused: " + w.instead
		}
		name := strings.Join(w.names, ", ") + " " + w.values
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(strings.TrimSpace(name), "|", `\|`), w.of, strings.ReplaceAll(text, "|", `\|`))
	}
	return b.String()
}

// The help topic contains the table of the flags. CLUSTERRUN_REWRITE=1 rewrites it.
func TestTopic(t *testing.T) {
	const path = "../../help/topics/reference/mpirun.md"
	topic := must.Get(os.ReadFile(path))(t)
	table := regexp.MustCompile(`(?m)^\| flag .*\n(\|.*\n)+`)
	require.Len(t, table.FindAll(topic, -1), 1)
	if os.Getenv("CLUSTERRUN_REWRITE") != "" {
		topic = table.ReplaceAllLiteral(topic, []byte(reference()))
		require.NoError(t, os.WriteFile(path, topic, 0o644))
	}
	assert.Equal(t, reference(), string(table.Find(topic)))
}

// Each flag of another launcher is translated, or unneeded, or refused with an alternative.
func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range words {
		ways := 0
		for _, is := range []bool{w.flags != nil, w.unneeded != "", w.instead != ""} {
			if is {
				ways++
			}
		}
		assert.Equal(t, 1, ways, w.names)
		assert.Equal(t, w.flags != nil, w.here != "", w.names)
		for _, name := range w.names {
			assert.False(t, seen[name], name)
			seen[name] = true
		}
	}
}

// No arguments cause a panic, and each refusal has a message.
func FuzzTranslate(f *testing.F) {
	f.Add("-np 2 --map-by ppr:2:node:OVERSUBSCRIBE ./a")
	f.Add("-N2-4 -ln8 -t1-2:3 -w n[1-3,07],x ./a")
	f.Add("-genv A B --export=ALL,A=B -- x")
	f.Fuzz(func(t *testing.T, line string) {
		out := translated(append([]string{"run"}, strings.Split(line, " ")...))
		assert.NotEmpty(t, strings.TrimPrefix(out, "error: \n"))
	})
}
