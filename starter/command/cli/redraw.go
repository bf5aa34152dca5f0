package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/clusterrun/clusterrun/activities/system/pty"
)

// Redrawn is text on a terminal that is drawn over its previous version. It leaves the rest of
// the screen alone, so the terminal does not need cleanup even if the program is killed.
type Redrawn struct {
	Terminal *os.File
	lines    int
}

// Show replaces the text, truncated to the terminal's size.
func (r *Redrawn) Show(text string) error {
	rows, columns, err := pty.Size(r.Terminal)
	if err != nil || rows < 2 || columns < 1 {
		rows, columns = 24, 80
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if most := rows - 1; len(lines) > most {
		lines = append(lines[:most-1], fmt.Sprintf("… %d more lines", len(lines)-most+1))
	}
	var b bytes.Buffer
	b.WriteString("\r")
	if r.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", r.lines)
	}
	for _, line := range lines {
		b.WriteString(ansi.Truncate(line, columns, "…") + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	r.lines = len(lines)
	_, err = r.Terminal.Write(b.Bytes())
	return err
}
