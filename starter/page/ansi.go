package page

import (
	"html/template"

	"github.com/charmbracelet/x/ansi"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ansiHTML returns a line of output as HTML.
func ansiHTML(line string) template.HTML {
	return template.HTML(template.HTMLEscapeString(spec.Visible(ansi.Strip(line))))
}
