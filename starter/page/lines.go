package page

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// maxOfLine is how many bytes of an output line are shown.
const maxOfLine = 4 << 10

// outputHTML returns one or more lines of output as HTML. It omits terminal sequences, such as those
// for colors, and shows other control characters. Of a line that a progress bar rewrites, it shows
// the last state.
func outputHTML(text string) template.HTML {
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
	b.WriteString(template.HTMLEscapeString(spec.EscapeControl(ansi.Strip(line))))
	if more > 0 {
		fmt.Fprintf(b, ` <span class="cut">… %s more</span>`, units.Bytes(int64(more)))
	}
}
