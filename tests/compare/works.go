package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/tests/measure"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

// comparison contains the compared launchers and the results. clusterrun is the first launcher.
type comparison struct {
	*measure.Place
	machine measure.Machine
	rounds  int           // at most
	each    time.Duration // by work and launcher
	program []string      // the arguments that select one of bench's programs
	columns []column
	missing []string // launchers that are not installed
	rows    []row
	// alike are the rows about libraries, with their cells by name.
	alike []libraryRow
	// failures lists measurements that failed and were not repeated.
	failures []string
}

type column struct {
	name string
	*measure.Launcher
}

// row is one work, with a cell for each launcher.
type row struct {
	name, unit string
	more       bool // is better
	between    bool // the first mark may be read late, so there is no best round
	cells      []cell
}

// cell is a figure, or text in its place.
type cell struct {
	value float64
	text  string
}

type libraryRow struct {
	work, with string
	figures    []string
	ours       bool
}

// add adds a launcher. l is nil if it is not installed.
func (c *comparison) add(name, debian string, l *measure.Launcher) {
	switch {
	case l != nil:
		c.columns = append(c.columns, column{name, l})
	case debian != "":
		c.missing = append(c.missing, fmt.Sprintf("%s (Debian: %s)", name, debian))
	default:
		c.missing = append(c.missing, name)
	}
}

const (
	// measureBound cancels a measurement that hangs.
	measureBound = time.Minute
	// minRounds is the minimum, even if the rounds take longer than each.
	minRounds = 3

	copies   = 8
	teeTasks = 4
	teeLines = 100_000
	// leftAfter is when the processes left by a killed launcher are counted.
	leftAfter = 5 * time.Second
)

// work is a task for comparing launchers.
type work struct {
	row
	start   func(*measure.Launcher) measure.Start // returns nil if the launcher cannot do the work
	measure func(context.Context, *measure.Launcher) (float64, error)
	once    bool
}

func (c *comparison) works() []work {
	launch := func(l *measure.Launcher) measure.Start { return l.Launch }
	var list []work
	for _, n := range []int{1, copies} {
		list = append(list, work{row: row{name: fmt.Sprintf("`true` in %s, the whole command", plural.Of(n, "process", "processes")), unit: "ms"},
			start: func(l *measure.Launcher) measure.Start {
				if l.Stays {
					return nil
				}
				return l.Launch
			},
			measure: func(ctx context.Context, l *measure.Launcher) (float64, error) {
				took, err := c.Whole(ctx, l.Launch, n)
				return measure.Milliseconds(took), err
			}})
	}
	for _, n := range []int{1, copies, 64, 256} {
		list = append(list, work{row: row{name: fmt.Sprintf("launch, until %d execute", n), unit: "ms"}, start: launch,
			measure: func(ctx context.Context, l *measure.Launcher) (float64, error) {
				took, err := c.Launch(ctx, l, n)
				return measure.Milliseconds(took), err
			}})
	}
	return append(list,
		work{row: row{name: "restart of a failed process, the median", unit: "ms", between: true}, start: func(l *measure.Launcher) measure.Start { return l.Restart },
			measure: func(ctx context.Context, l *measure.Launcher) (float64, error) {
				took, err := c.Restart(ctx, l)
				return measure.Milliseconds(took), err
			}},
		work{row: row{name: fmt.Sprintf("one of %d fails, until all have ended, the median", copies), unit: "ms", between: true}, start: func(l *measure.Launcher) measure.Start { return l.End },
			measure: func(ctx context.Context, l *measure.Launcher) (float64, error) {
				took, err := c.EndAfterFailure(ctx, l.End, copies)
				return measure.Milliseconds(took), err
			}},
		work{row: row{name: fmt.Sprintf("output of %d with prefixes, 1000 lines of 100 bytes in a second", teeTasks), unit: "", more: true},
			start: func(l *measure.Launcher) measure.Start { return l.Tee }, measure: c.tee},
		work{row: row{name: "memory of the launcher with 1 process", unit: "MiB"}, start: launch, once: true,
			measure: func(ctx context.Context, l *measure.Launcher) (float64, error) {
				size, err := c.Memory(ctx, l, 1)
				return float64(size) / (1 << 20), err
			}},
		work{row: row{name: "memory for each further process", unit: "KiB"}, start: launch, once: true,
			measure: func(ctx context.Context, l *measure.Launcher) (float64, error) {
				one, err := c.Memory(ctx, l, 1)
				if err != nil {
					return 0, err
				}
				many, err := c.Memory(ctx, l, 65)
				return max(0, float64(many-one)/64/1024), err
			}},
		work{row: row{name: fmt.Sprintf("of %d processes left %s after `kill -9` of the launcher", copies, leftAfter)}, start: launch, once: true,
			measure: func(ctx context.Context, l *measure.Launcher) (float64, error) {
				left, err := c.Left(ctx, l, copies, leftAfter)
				return float64(left), err
			}},
	)
}

// launchers measures all works with all launchers, in turns.
func (c *comparison) launchers(ctx context.Context) error {
	for _, w := range c.works() {
		results := make([][]float64, len(c.columns))
		failed := make([]error, len(c.columns))
		spent := make([]time.Duration, len(c.columns))
		rounds := c.rounds
		if w.once {
			rounds = 1
		}
		for round := range rounds {
			for i, l := range c.columns {
				if w.start(l.Launcher) == nil || failed[i] != nil || round >= minRounds && spent[i] > c.each {
					continue
				}
				fmt.Fprintf(os.Stderr, "%s: %s, %d\n", w.name, l.name, round+1)
				begun := time.Now()
				limited, cancel := context.WithTimeout(ctx, measureBound)
				v, err := w.measure(limited, l.Launcher)
				cancel()
				if ctx.Err() != nil {
					return ctx.Err()
				}
				spent[i] += time.Since(begun)
				if err != nil {
					fmt.Fprintf(os.Stderr, "%s: %s: %v\n", w.name, l.name, err)
					failed[i] = err
					continue
				}
				results[i] = append(results[i], v)
			}
		}
		for i, l := range c.columns {
			if failed[i] != nil {
				c.failures = append(c.failures, fmt.Sprintf("%s, %s: failed in round %d", w.name, l.name, len(results[i])+1))
			}
			switch {
			case w.start(l.Launcher) == nil:
				w.cells = append(w.cells, cell{text: "–"})
			case len(results[i]) == 0:
				w.cells = append(w.cells, cell{text: "failed"})
			case w.between:
				slices.Sort(results[i])
				w.cells = append(w.cells, cell{value: results[i][len(results[i])/2]})
			case w.more:
				w.cells = append(w.cells, cell{value: slices.Max(results[i])})
			default:
				w.cells = append(w.cells, cell{value: slices.Min(results[i])})
			}
		}
		c.rows = append(c.rows, w.row)
	}
	return nil
}

// tee returns how many thousand lines per second reach a file.
func (c *comparison) tee(ctx context.Context, l *measure.Launcher) (float64, error) {
	lines := filepath.Join(c.Dir, "lines")
	if _, err := os.Stat(lines); err != nil {
		var text []byte
		for i := range teeLines {
			text = fmt.Appendf(text, "%099d\n", i)
		}
		if err := os.WriteFile(lines, text, 0o600); err != nil {
			return 0, err
		}
	}
	dir, err := os.MkdirTemp(c.Dir, "tee-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	argv, err := l.Tee(dir, teeTasks, []string{"cat", lines})
	if err != nil {
		return 0, err
	}
	size, took, err := c.Output(ctx, argv)
	if err == nil && size < teeTasks*teeLines*100 {
		err = fmt.Errorf("of %d bytes %d came out", teeTasks*teeLines*100, size)
	}
	return teeTasks * teeLines / took.Seconds() / 1000, err
}

// libraries measures barriers and closures.
func (c *comparison) libraries(ctx context.Context) error {
	barrier := func(with string, ours bool, measure func() (float64, error)) error {
		best := 0.0
		for range min(minRounds, c.rounds) {
			fmt.Fprintf(os.Stderr, "barrier: %s\n", with)
			v, err := measure()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "%v\n", err)
				c.alike = append(c.alike, libraryRow{fmt.Sprintf("barrier of %d", copies), with, []string{"does not run here"}, ours})
				return nil
			}
			if best == 0 || v < best {
				best = v
			}
		}
		c.alike = append(c.alike, libraryRow{fmt.Sprintf("barrier of %d", copies), with, []string{digits(best/1000) + " µs"}, ours})
		return nil
	}
	const rounds = 1000
	python, err := Script("barrier_clusterrun", c.Dir)
	if err != nil {
		return err
	}
	script := func(name string) func() (float64, error) {
		return func() (float64, error) {
			figures, err := Run(ctx, name, strconv.Itoa(copies), strconv.Itoa(rounds))
			if err != nil {
				return 0, err
			}
			return figures[0], nil
		}
	}
	ours := c.columns[0].Launcher
	for _, b := range []struct {
		with    string
		ours    bool
		measure func() (float64, error)
	}{
		{"clusterrun, Go, `local`", true, func() (float64, error) {
			d, err := c.LocalBarrier(ctx, ours, copies, rounds, c.program)
			return float64(d.Nanoseconds()), err
		}},
		{"a byte each to a socket and back", false, func() (float64, error) {
			d, err := c.Exchange(ctx, copies, rounds, c.program)
			return float64(d.Nanoseconds()), err
		}},
		{"clusterrun, Python, `local`", true, func() (float64, error) {
			d, err := c.Barrier(ctx, ours.Launch, copies, []string{Python, python, strconv.Itoa(rounds)})
			return float64(d.Nanoseconds()), err
		}},
		{"torch's TCPStore", false, script("barrier_tcpstore")},
		{"multiprocessing's manager", false, script("barrier_multiprocessing")},
	} {
		if err := barrier(b.with, b.ours, b.measure); err != nil {
			return err
		}
	}
	return c.closures(ctx)
}

// closures compares function calls in other processes.
func (c *comparison) closures(ctx context.Context) error {
	for _, library := range []struct {
		with string
		ours bool
		run  func() ([]float64, error)
	}{
		{"clusterrun, Python", true, func() ([]float64, error) { return c.ourClosures(ctx) }},
		{"Celery on Redis", false, func() ([]float64, error) { return Run(ctx, "closures_celery") }},
		{"Dask", false, func() ([]float64, error) { return Run(ctx, "closures_dask") }},
	} {
		fmt.Fprintf(os.Stderr, "closures: %s\n", library.with)
		figures, err := library.run()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		alone, rate := "does not run here", "does not run here"
		if err != nil {
			fmt.Fprintf(os.Stderr, "%v\n", err)
		} else {
			alone, rate = digits(1000*figures[1])+" ms", digits(figures[0])+" in a second"
		}
		c.alike = append(c.alike, libraryRow{"call of a function, 1 and 5000", library.with, []string{alone, rate}, library.ours})
	}
	return nil
}

func (c *comparison) ourClosures(ctx context.Context) ([]float64, error) {
	path, err := Script("closures_clusterrun", c.Dir)
	if err != nil {
		return nil, err
	}
	figures := filepath.Join(c.Dir, "figures")
	argv, err := measure.WithChief(os.Getenv("CLUSTERRUN_BIN"), c.StateDir())(c.Dir, 5, []string{Python, path, figures})
	if err != nil {
		return nil, err
	}
	if _, err := c.Time(ctx, argv); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(figures)
	if err != nil {
		return nil, err
	}
	return Numbers(string(text))
}
