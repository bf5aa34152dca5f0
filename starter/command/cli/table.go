package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// Table writes rows of aligned columns. Call Flush at the end.
type Table struct{ *tabwriter.Writer }

// NewTable returns a table with the given heading, which may be empty.
func NewTable(out io.Writer, heading ...any) Table {
	t := Table{tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)}
	if len(heading) > 0 {
		t.Row(heading...)
	}
	return t
}

// Row writes a row.
func (t Table) Row(cells ...any) {
	fmt.Fprintln(t, strings.Join(list.Of(cells, func(cell any) string { return fmt.Sprint(cell) }), "\t"))
}
