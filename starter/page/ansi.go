package page

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// maxOfLine is how many bytes of an output line are shown.
const maxOfLine = 4 << 10

// colors matches the sequences that set colors and fonts (SGR).
var colors = lazyregexp.New("\x1b\\[[0-9;:]*m")

// ansiHTML returns one or more lines of output as HTML. It keeps colors and bold text, omits
// other terminal sequences, and shows other control characters. Of a line that a progress bar
// rewrites, it shows the last state.
func ansiHTML(text string) template.HTML {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		appendLine(&b, line)
	}
	return template.HTML(b.String())
}

func appendLine(b *strings.Builder, line string) {
	line = strings.TrimRight(line, "\r")
	line = line[strings.LastIndexByte(line, '\r')+1:]
	more := len(line) - maxOfLine
	if more > 0 {
		line = line[:maxOfLine]
	}
	if strings.IndexByte(line, 0x1b) < 0 {
		b.WriteString(template.HTMLEscapeString(spec.EscapeControl(ansi.Strip(line))))
	} else {
		appendColored(b, line)
	}
	if more > 0 {
		fmt.Fprintf(b, ` <span class="cut">… %s more</span>`, units.Bytes(int64(more)))
	}
}

// appendColored appends a line that contains color sequences.
func appendColored(b *strings.Builder, line string) {
	var f font
	for line != "" {
		at := colors().FindStringIndex(line)
		piece, rest := line, ""
		if at != nil {
			piece, rest = line[:at[0]], line[at[1]:]
		}
		if piece = spec.EscapeControl(ansi.Strip(piece)); piece != "" {
			class := f.class()
			if class != "" {
				b.WriteString(`<span class="` + class + `">`)
			}
			b.WriteString(template.HTMLEscapeString(piece))
			if class != "" {
				b.WriteString(`</span>`)
			}
		}
		if at != nil {
			f.apply(line[at[0]+2 : at[1]-1])
		}
		line = rest
	}
}

// font is the subset of terminal attributes that a page shows.
type font struct {
	color                           int // 1 to 16 for the standard colors; 0 is the default color
	bold, faint, italic, underlined bool
}

// class returns the classes for a span, or "".
func (f font) class() string {
	var classes []string
	if f.color > 0 {
		classes = append(classes, "a"+strconv.Itoa(f.color-1))
	}
	for _, c := range []struct {
		name string
		on   bool
	}{{"ab", f.bold}, {"af", f.faint}, {"ai", f.italic}, {"au", f.underlined}} {
		if c.on {
			classes = append(classes, c.name)
		}
	}
	return strings.Join(classes, " ")
}

// apply applies a sequence's parameters. Colors outside the standard 16 count as the default
// color.
func (f *font) apply(parameters string) {
	list := strings.Split(parameters, ";")
	for i := 0; i < len(list); i++ {
		code, _, _ := strings.Cut(list[i], ":")
		n, _ := strconv.Atoi(code) // a missing number means 0
		switch {
		case n == 0:
			*f = font{}
		case n == 1:
			f.bold = true
		case n == 2:
			f.faint = true
		case n == 3:
			f.italic = true
		case n == 4:
			f.underlined = true
		case n == 22:
			f.bold, f.faint = false, false
		case n == 23:
			f.italic = false
		case n == 24:
			f.underlined = false
		case n >= 30 && n <= 37:
			f.color = n - 29
		case n >= 90 && n <= 97:
			f.color = n - 81
		case n == 39:
			f.color = 0
		case n == 38 || n == 48 || n == 58:
			if i+1 < len(list) && !strings.Contains(list[i], ":") {
				i += map[string]int{"5": 2, "2": 4}[list[i+1]]
			}
			if n == 38 {
				f.color = 0
			}
		}
	}
}
