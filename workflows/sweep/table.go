package sweep

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// parseTable parses CSV according to RFC 4180. Empty lines are skipped.
func parseTable(text string) (*Trials, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	t := &Trials{}
	for {
		row, err := r.Read()
		var mistake *csv.ParseError
		switch {
		case err == io.EOF:
			t.count = len(t.rows)
			return t, nil
		case errors.As(err, &mistake):
			return nil, fmt.Errorf("line %d: %w. Quote values that contain quotes or line breaks, and double the quotes in them", mistake.Line, mistake.Err)
		case err != nil:
			return nil, err
		}
		line, _ := r.FieldPos(0)
		switch {
		case t.names == nil:
			for _, name := range row {
				t.names = append(t.names, strings.TrimSpace(name))
			}
		case len(row) != len(t.names):
			return nil, fmt.Errorf("line %d: it has %s, but the first line has %s. Add a value for each parameter",
				line, units.Count(len(row), "column", "columns"), units.Count(len(t.names), "name", "names"))
		case len(t.rows) == MaxTrials:
			return nil, fmt.Errorf("line %d: it is trial %d, but a sweep has at most %d. Divide the table into several", line, MaxTrials+1, MaxTrials)
		default:
			t.rows = append(t.rows, row)
		}
	}
}
