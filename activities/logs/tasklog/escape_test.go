package tasklog

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func filtered(pieces ...string) (string, *filter) {
	var f filter
	var out []byte
	for _, p := range pieces {
		out = f.appendSafe(out, []byte(p))
	}
	return string(out), &f
}

// The cases are effects that a tailed line may have on a terminal, and effects that it may not
// have. The result does not depend on where the text is cut.
func TestFilter(t *testing.T) {
	for name, c := range map[string]struct{ in, out string }{
		"text":                     {"plain é\tx\xff\xc3", "plain é\tx\xff\xc3"},
		"colours":                  {"\x1b[31mred\x1b[0m \x1b[1;38;5;200mx\x1b[m", "\x1b[31mred\x1b[0m \x1b[1;38;5;200mx\x1b[m"},
		"colons":                   {"\x1b[4:3m\x1b[38:2::1:2:3mx", "\x1b[4:3m\x1b[38:2::1:2:3mx"},
		"cursor":                   {"a\x1b[Ab\x1b[10;10Hc\x1b[2Jd\x1b[Ke\x1b7f\x1b8g\x1bMh\x1bDi", "abcdefghi"},
		"screens":                  {"\x1b[?1049ha\x1b[?25lb\x1b[?7l", "ab"},
		"scrolling":                {"\x1b[5;10ra\x1b[3Sb\x1b[2Lc", "abc"},
		"keyboard modes, not SGR":  {"\x1b[>4;2ma\x1b[?4mb", "ab"},
		"character sets":           {"\x1b(0a\x0eb\x0fc\x1b%Gd", "abcd"},
		"reset":                    {"\x1bca\x1b[!pb", "ab"},
		"title and clipboard":      {"\x1b]0;title\ax\x1b]52;c;aGk=\x1b\\y", "xy"},
		"device control":           {"\x1bPq#0;2;0;0;0\x1b\\x\x1b_Gf=100;AAAA\x1b\\y\x1b^p\x1b\\z\x1bXs\x1b\\!", "xyz!"},
		"answerback, tabs and FF":  {"a\x05b\vc\fd", "abcd"},
		"link":                     {"\x1b]8;id=1;http://x/\ahere\x1b]8;;\a", "\x1b]8;id=1;http://x/\x1b\\here\x1b]8;;\x1b\\"},
		"link with ST":             {"\x1b]8;;http://x/\x1b\\here\x1b]8;;\x1b\\", "\x1b]8;;http://x/\x1b\\here\x1b]8;;\x1b\\"},
		"C1 controls":              {"a\u009b2Jb\u009d0;t\ac\u0085d", "abcd"},
		"Latin-1":                  {"£ 5 §", "£ 5 §"},
		"half a letter":            {"a\xc2b\xc2\x1b[K\x9b2J", "ab\x9b2J"},
		"cancelled":                {"a\x1b[31\x18b\x1b]8;;x\x1ac", "abc"},
		"broken by another":        {"a\x1b[3\x1b[32mb", "a\x1b[32mb"},
		"string broken by another": {"a\x1b]0;x\x1b[32mb", "a\x1b[32mb"},
		"control in a sequence":    {"a\x1b[3\x051mb", "a\x1b[31mb"},
		"letter in a sequence":     {"a\x1b[3éb", "aéb"},
		"too long":                 {"a\x1b]8;;" + strings.Repeat("x", 2*maxSequence) + "\abc\x1b[" + strings.Repeat("1;", maxSequence) + "mb", "abcb"},
		"backspace":                {"b\bb", "b\bb"},
	} {
		t.Run(name, func(t *testing.T) {
			got, f := filtered(c.in)
			assert.Equal(t, c.out, got)
			assert.LessOrEqual(t, cap(f.sequence), 3*maxSequence)
			if len(c.in) > 1000 {
				return
			}
			for i := range c.in {
				got, _ := filtered(c.in[:i], c.in[i:])
				require.Equal(t, c.out, got, "cut at %d", i)
			}
			got, _ = filtered(strings.Split(c.in, "")...)
			require.Equal(t, c.out, got)
		})
	}
}

func TestUnfinishedSequenceEndsWithItsLine(t *testing.T) {
	_, f := filtered("a\x1b]0;title")
	f.abort()
	assert.Equal(t, "b", string(f.appendSafe(nil, []byte("b"))))
}

func TestStyleGoesOn(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"\x1b[1;31m":                         "\x1b[1;31m",
		"\x1b[31m\x1b[32m":                   "\x1b[32m",
		"\x1b[1;2;3;4;5;7;8;9;53m":           "\x1b[1;2;3;4;5;7;8;9;53m",
		"\x1b[1;2;3m\x1b[22m":                "\x1b[3m",
		"\x1b[3;4;5;7;8;9m\x1b[23;24;25;27m": "\x1b[8;9m",
		"\x1b[8;9;53;51m\x1b[28;29;54;55m":   "",
		"\x1b[31;42m\x1b[39m":                "\x1b[42m",
		"\x1b[91;102m\x1b[49m":               "\x1b[91m",
		"\x1b[31;0;32m":                      "\x1b[32m",
		"\x1b[31m\x1b[m":                     "",
		"\x1b[38;5;7;1m":                     "\x1b[1;38;5;7m",
		"\x1b[48;2;1;2;3;4m":                 "\x1b[4;48;2;1;2;3m",
		"\x1b[38:2::1:2:3;58:5:9m\x1b[59m":   "\x1b[38:2::1:2:3m",
		"\x1b[4:3m\x1b[4:0m":                 "",
		"\x1b[21m\x1b[24m":                   "",
		"\x1b[11m\x1b[73m\x1b[10;75m":        "",
		"\x1b[38m\x1b[38;9m\x1b[48;2;1;2m":   "",
		"\x1b[01;31m":                        "\x1b[01;31m",
		"\x1b[1:2m\x1b[:1m\x1b[26m":          "",
		"\x1b[123456789012345678901m":        "",
		"\x1b]8;;u\x1b\\\x1b[1m":             "\x1b[1m\x1b]8;;u\x1b\\",
		"\x1b]8;;u\x1b\\\x1b]8;;\x1b\\":      "",
	} {
		_, f := filtered(in)
		assert.Equal(t, want, string(f.style.appendOpen(nil)), "%q", in)
		assert.Equal(t, want == "", f.style.isPlain(), "%q", in)
	}
}

// For any text, a terminal gets only text, attributes and links.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb", "\x1b]8;;x\x1b\\y", "\x1bP1\x1b\\", "\u009b2J", "\x1b\x1b[\x1b]\x1b\\", "\xc2\x1b[K", "\x1b(\x1b[1m"} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\n"), nil), []byte("\r"), nil)
		cut = min(max(cut, 0), len(text))
		whole, _ := filtered(string(text))
		parts, _ := filtered(string(text[:cut]), string(text[cut:]))
		require.Equal(t, whole, parts)
		term := newTerminal(80, 5)
		_, _ = term.Write([]byte(whole))
		assert.Empty(t, term.unknown, "%q", whole)
		assert.NotContains(t, whole, "\x1b[K")
		again, _ := filtered(whole)
		assert.Equal(t, whole, again, "what is safe stays as it is")
		assert.LessOrEqual(t, len(whole), 2*len(text)+8)
	})
}
