package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// The marks between which the table goes.
const (
	begin = "<!-- begin: made by `make compare` -->\n"
	end   = "<!-- end -->\n"
)

// replace inserts text between a page's marks.
func replace(page, text string) error {
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has not the lines %q and %q", page, begin, end)
	}
	return os.WriteFile(page, []byte(before+begin+"\n"+text+"\n"+end+after), 0o644)
}

// peerRounds limits how often a launcher is measured by a work.
const peerRounds = 15

// comparison contains the compared launchers and the results. clusterrun is the first launcher.
type comparison struct {
	*Place
	machine Machine
	columns []column
	missing []string // launchers that are not installed
	rows    []row
	alike   []libraryRow // about libraries
	// failures lists measurements that failed and were not repeated.
	failures []string
}

type column struct {
	name string
	*Launcher
}

// row is one work, with a cell for each launcher.
type row struct {
	work
	cells []cell
}

// cell is a figure, or text in its place.
type cell struct {
	value float64
	text  string
}

type libraryRow struct {
	work, with string
	figures    []string
}

// add adds a launcher. l is nil if it is not installed.
func (c *comparison) add(name, debian string, l *Launcher) {
	switch {
	case l != nil:
		c.columns = append(c.columns, column{name, l})
	case debian != "":
		c.missing = append(c.missing, fmt.Sprintf("%s (Debian: %s)", name, debian))
	default:
		c.missing = append(c.missing, name)
	}
}

func (c *comparison) markdown() string {
	var t strings.Builder
	fmt.Fprintf(&t, "On %s (%s), the best of %s:\n\n", c.machine, time.Now().UTC().Format("2 January 2006"), units.Count(peerRounds, "round", "rounds at most"))
	t.WriteString("| |")
	for _, l := range c.columns {
		fmt.Fprintf(&t, " %s |", l.name)
	}
	t.WriteString("\n|" + strings.Repeat(" --- |", len(c.columns)+1) + "\n")
	for _, r := range c.rows {
		fmt.Fprintf(&t, "| %s |", r.name)
		for _, cell := range r.cells {
			fmt.Fprintf(&t, " %s |", cell.in(r.unit))
		}
		t.WriteByte('\n')
	}
	t.WriteString("\n| | with | alone | many |\n| --- | --- | --- | --- |\n")
	for _, r := range c.alike {
		fmt.Fprintf(&t, "| %s | %s | %s |", r.work, r.with, strings.Join(r.figures, " | "))
		if len(r.figures) == 1 {
			t.WriteString(" |")
		}
		t.WriteByte('\n')
	}
	t.WriteString("\nWhere another launcher is better, and where one failed:\n\n")
	t.WriteString(c.worse())
	for _, failure := range c.failures {
		fmt.Fprintf(&t, "- %s\n", failure)
	}
	if len(c.missing) > 0 {
		fmt.Fprintf(&t, "\nNot installed: %s.\n", strings.Join(c.missing, ", "))
	}
	return t.String()
}

func (c cell) in(unit string) string {
	if c.text != "" {
		return c.text
	}
	return strings.TrimSpace(digits(c.value) + " " + unit)
}

// worse lists the works that other launchers do better than clusterrun.
func (c *comparison) worse() string {
	var t strings.Builder
	for _, r := range c.rows {
		var by []string
		for i, cell := range r.cells[1:] {
			ours := r.cells[0]
			better := cell.value < ours.value
			if r.more {
				better = cell.value > ours.value
			}
			if cell.text != "" || ours.text != "" || !better || c.columns[i+1].name == "a shell" {
				continue
			}
			times := ours.value / cell.value
			if r.more {
				times = 1 / times
			}
			if cell.value < 0.5 {
				by = append(by, fmt.Sprintf("%s (%s)", c.columns[i+1].name, cell.in(r.unit)))
				continue
			}
			by = append(by, fmt.Sprintf("%s (%s times)", c.columns[i+1].name, digits(times)))
		}
		if len(by) > 0 {
			fmt.Fprintf(&t, "- %s: %s\n", r.name, strings.Join(by, ", "))
		}
	}
	if t.Len() == 0 {
		return "- nowhere, of what was measured\n"
	}
	return t.String()
}

// digits formats a number with three digits, or all digits before the point.
func digits(f float64) string {
	switch {
	case f >= 100 || f == float64(int(f)):
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}
