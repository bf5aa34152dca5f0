package sweep

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// MaxTrials is the maximum number of trials in a sweep.
	MaxTrials = 100_000
	// maxGridBytes limits a stored grid. Together with the run's spec, such a grid fits into the 2
	// MiB that a Temporal server accepts in a payload.
	maxGridBytes = 800 << 10
	// packAbove is the size in bytes above which tables are stored compressed.
	packAbove = 16 << 10
)

// Grid is the stored list of a sweep's trials. Exactly one field is set.
type Grid struct {
	// Product holds lists and ranges, such as "lr=1e-3,3e-4 seed=0..9". All combinations are
	// trials.
	Product string `json:"product,omitempty"`
	// Table is CSV with a line of names and a line for each trial. Packed is the same, compressed
	// by gzip.
	Table  string `json:"table,omitempty"`
	Packed []byte `json:"packed,omitempty"`
}

// Value is a parameter's value in a trial.
type Value struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Trials holds a parsed grid.
type Trials struct {
	names []string
	count int
	axes  []axis     // of a product
	rows  [][]string // of a table
}

// Parse returns a grid's trials.
func (g Grid) Parse() (*Trials, error) {
	text := g.Table
	if len(g.Packed) > 0 {
		unpacked, err := unpack(g.Packed)
		if err != nil {
			return nil, err
		}
		text = unpacked
	}
	var t *Trials
	var err error
	if g.Product != "" {
		t, err = parseProduct(g.Product)
	} else {
		t, err = parseTable(text)
	}
	if err != nil {
		return nil, err
	}
	return t, t.check()
}

// ProductGrid parses a product such as "lr=1e-3,3e-4 seed=0..9".
func ProductGrid(text string) (Grid, error) {
	if strings.TrimSpace(text) == "" {
		return Grid{}, errors.New(`it is empty. Write parameters with their values, such as "lr=1e-3,3e-4 seed=0..9"`)
	}
	return checked(Grid{Product: text}, len(text))
}

// TableGrid parses a table in CSV.
func TableGrid(text []byte) (Grid, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if len(text) > MaxTableBytes {
		return Grid{}, fmt.Errorf("it has more than %d bytes. Put long values into files, and name the files instead", MaxTableBytes)
	}
	g := Grid{Table: string(text)}
	if len(text) > packAbove {
		g = Grid{Packed: pack(text)}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return g, errors.New("the table is empty. Its first line names the parameters, and each further line is a trial")
	}
	return checked(g, len(g.Table)+len(g.Packed))
}

// checked returns g if it can be parsed and stored.
func checked(g Grid, size int) (Grid, error) {
	if size > maxGridBytes {
		return g, fmt.Errorf("it has %d bytes, but at most %d can be stored. Put long values into files, and name the files instead", size, maxGridBytes)
	}
	_, err := g.Parse()
	return g, err
}

func pack(text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(text) // writing to a buffer never fails
	_ = w.Close()
	return b.Bytes()
}

// MaxTableBytes limits the size of an uncompressed table.
const MaxTableBytes = 64 << 20

func unpack(packed []byte) (string, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", fmt.Errorf("cannot read the stored table: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, MaxTableBytes+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot read the stored table: %w", err)
	case len(text) > MaxTableBytes:
		return "", fmt.Errorf("the table has more than %d bytes. Put long values into files, and name the files instead", MaxTableBytes)
	}
	return string(text), nil
}

// Len returns the number of trials.
func (t *Trials) Len() int { return t.count }

// Names returns the parameter names, in the order of the grid.
func (t *Trials) Names() []string { return t.names }

// Values returns a trial's values, in the order of [Trials.Names]. In a product, the last
// parameter varies fastest.
func (t *Trials) Values(trial int) []Value {
	values := make([]Value, len(t.names))
	for i := len(t.names) - 1; i >= 0; i-- {
		values[i].Name = t.names[i]
		if t.rows != nil {
			values[i].Value = t.rows[trial][i]
			continue
		}
		n := t.axes[i].count
		values[i].Value = t.axes[i].value(trial % n)
		trial /= n
	}
	return values
}

// reserved lists the names that every template can use and that parameters therefore cannot have.
var reserved = []string{nameTrial, nameSweep}

// check checks the names and the number of trials.
func (t *Trials) check() error {
	variables := map[string]string{}
	for i, name := range t.names {
		switch {
		case !isName(name):
			return fmt.Errorf("parameter %s: a name consists of letters, digits, _ and -, and starts with a letter or _. Rename it", spec.Quote(shorten.Text(name, 60)))
		case slices.Contains(reserved, name):
			return fmt.Errorf("parameter %s: {%s} is reserved. Rename the parameter", name, name)
		case slices.Contains(t.names[:i], name):
			return fmt.Errorf("parameter %s: it is given twice. List all its values in one place", name)
		}
		v := VariableOf(name)
		if other := variables[v]; other != "" {
			return fmt.Errorf("parameters %s and %s: both would be the variable %s in trials. Rename one of them", other, name, v)
		}
		variables[v] = name
	}
	switch {
	case len(t.names) == 0:
		return errors.New("it does not contain parameters. Write them with their values, such as lr=1e-3,3e-4")
	case t.count == 0:
		return errors.New("it does not contain trials. Each line after the first is a trial")
	case t.count > MaxTrials:
		return fmt.Errorf("it has more than %d trials, the maximum. Divide it into several sweeps", MaxTrials)
	}
	return nil
}
