package markdown

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestTracebacksAreFenced(t *testing.T) {
	for text, want := range map[string]string{
		"":  "\n```\n\n```\n",
		"a": "\n```\na\n```\n",
		"  File \"<stdin>\", in __init__\r\n    *x*\n": "\n```\n  File \"<stdin>\", in __init__\n    *x*\n```\n",
		"```\n# out":               "\n````\n```\n# out\n````\n",
		"~~~\n``````":              "\n```````\n~~~\n``````\n```````\n",
		"\x1b[31mred\x1b[0m\a\x7f": "\n```\n␛[31mred␛[0m␇␡\n```\n",
		"a\rb\u202ec\xff\u0085":    "\n```\na␍b\ufffdc\ufffd\ufffd\n```\n",
	} {
		assert.Equal(t, want, Block(text, 1000), "%q", text)
	}
}

func TestNamesAreWrittenAsTheyAre(t *testing.T) {
	for text, want := range map[string]string{
		"":               "",
		"worker-1":       "worker-1",
		"train_step":     "train_step",
		"chief=1 ps=2":   "chief=1 ps=2",
		"a-0, a-1 and 2": "a-0, a-1 and 2",
		"__init__":       "`__init__`",
		"a--b":           "`a--b`",
		"a.example.com":  "`a.example.com`",
		"<b>x</b>":       "`<b>x</b>`",
		"a`b":            "``a`b``",
		"`":              "`` ` ``",
		"a````":          "`aˋˋˋˋ`",
		" a ":            "`  a  `",
		"  ":             "`␠␠`",
		"a\n\n# b\x1b[m": "`a␊␊# b␛[m`",
		"[a](http://b)":  "`[a](http://b)`",
	} {
		assert.Equal(t, want, Inline(text, 100), "%q", text)
	}
	assert.Equal(t, "`a¦b`", Cell("a|b"))
}

// For any text, the fence is the last line and no earlier line closes it, only the last character
// closes code, and both stay within their limits.
func FuzzNothingGetsOut(f *testing.F) {
	for _, text := range []string{"", "```", "a\n````\nb", strings.Repeat("`", 500), strings.Repeat("<\n", 300), "`a", " ", strings.Repeat(" ", 100), strings.Repeat("é", 300), "\xff\x1b", strings.Repeat("`a", 200)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const most = 300
		block := Block(text, most)
		assert.LessOrEqual(t, len(block), most)
		require.True(t, utf8.ValidString(block))
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		fence := lines[0]
		assert.Equal(t, fence, lines[len(lines)-1])
		for _, line := range lines[1 : len(lines)-1] {
			assert.NotContains(t, line, fence)
			assert.NotContains(t, line, "\x1b")
		}

		in := Inline(text, 100)
		assert.NotContains(t, in, "\n")
		require.True(t, utf8.ValidString(in))
		if quote := in[:len(in)-len(strings.TrimLeft(in, "`"))]; quote != "" {
			assert.True(t, strings.HasSuffix(in, quote))
			assert.NotContains(t, in[len(quote):len(in)-len(quote)], quote)
		} else {
			assert.True(t, isPlain(in))
		}
		b := must.Get(json.Marshal(in))(t)
		assert.LessOrEqual(t, len(b), 100+len("``````  ")+len("\"\""))
	})
}
