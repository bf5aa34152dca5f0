package bench

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/python"
	"github.com/clusterrun/clusterrun/tests/harness"
)

const (
	// peerTime limits how long a launcher is measured by a work, after minRounds.
	peerTime = 8 * time.Second
	// measureBound cancels a measurement that hangs.
	measureBound = time.Minute
	barrierTurns = 1000
)

// Python is the interpreter that Debian packages modules for.
const Python = "/usr/bin/python3"

// BenchmarkPeers alternates the same work between clusterrun, a bare shell and the installed
// launchers, and writes a table between two marks in the help topic compare.
func BenchmarkPeers(b *testing.B) {
	module, err := python.Install(b.TempDir(), "")
	require.NoError(b, err)
	p, ours, _ := newOwnPlace(b, append(os.Environ(), "PYTHONPATH="+module))
	c := &comparison{Place: p, machine: ThisMachine()}
	c.add("clusterrun", "", ours)
	c.add("a shell", "", Shell())
	for _, peer := range peers {
		c.add(peer.Name, peer.Debian, peer.Find())
	}
	for _, w := range append(p.works(1, someTasks, 64, 256), p.furtherWorks()...) {
		c.rows = append(c.rows, row{w, c.compare(b, w)})
	}
	c.barriers(b)
	for _, l := range c.closures(b) {
		figures, err := l.call()
		row := libraryRow{"call of a function, 1 and 5000", l.with, []string{"does not run here", "does not run here"}}
		if err == nil {
			row.figures = []string{digits(1000*figures[1]) + " ms", digits(figures[0]) + " in a second"}
		} else {
			b.Log(err)
		}
		c.alike = append(c.alike, row)
	}
	require.NoError(b, replace("../../starter/help/topics/reference/compare.md", c.markdown()))
}

// compare measures a work with all launchers, in turns.
func (c *comparison) compare(b *testing.B, w work) (cells []cell) {
	b.Helper()
	results := make([][]float64, len(c.columns))
	failed := make([]error, len(c.columns))
	spent := make([]time.Duration, len(c.columns))
	for round := range peerRounds {
		if w.once && round > 0 {
			break
		}
		for i, l := range c.columns {
			if w.start(l.Launcher) == nil || failed[i] != nil || round >= minRounds && spent[i] > peerTime {
				continue
			}
			fmt.Fprintf(os.Stderr, "%s: %s, %d\n", w.name, l.name, round+1)
			begun := time.Now()
			ctx, cancel := context.WithTimeout(b.Context(), measureBound)
			v, err := w.measure(ctx, l.Launcher)
			cancel()
			spent[i] += time.Since(begun)
			if failed[i] = err; err == nil {
				results[i] = append(results[i], v)
			}
		}
	}
	for i, l := range c.columns {
		if failed[i] != nil {
			b.Logf("%s: %s: %v", w.name, l.name, failed[i])
			c.failures = append(c.failures, fmt.Sprintf("%s, %s: failed in round %d", w.name, l.name, len(results[i])+1))
		}
		slices.Sort(results[i])
		n := len(results[i])
		switch {
		case w.start(l.Launcher) == nil:
			cells = append(cells, cell{text: "–"})
		case n == 0:
			cells = append(cells, cell{text: "failed"})
		case w.median:
			cells = append(cells, cell{value: results[i][n/2]})
		case w.more:
			cells = append(cells, cell{value: results[i][n-1]})
		default:
			cells = append(cells, cell{value: results[i][0]})
		}
	}
	return cells
}

// barriers compares barriers, by their best rounds.
func (c *comparison) barriers(b *testing.B) {
	b.Helper()
	ctx, ours := b.Context(), c.columns[0].Launcher
	program := writeScript(b, "barrier_clusterrun", c.Dir)
	ns := func(d time.Duration, err error) ([]float64, error) { return []float64{float64(d)}, err }
	for _, barrier := range []struct {
		with    string
		measure func() ([]float64, error)
	}{
		{"clusterrun, Go, `local`", func() ([]float64, error) { return ns(c.LocalBarrier(ctx, ours, someTasks, barrierTurns)) }},
		{"a byte each to a socket and back", func() ([]float64, error) { return ns(c.Exchange(ctx, someTasks, barrierTurns)) }},
		{"clusterrun, Python, `local`", func() ([]float64, error) {
			return ns(c.Barrier(ctx, ours.Launch, someTasks, []string{Python, program, strconv.Itoa(barrierTurns)}))
		}},
		{"torch's TCPStore", func() ([]float64, error) { return runBarrierScript(b, "barrier_tcpstore") }},
		{"multiprocessing's manager", func() ([]float64, error) { return runBarrierScript(b, "barrier_multiprocessing") }},
	} {
		row := libraryRow{fmt.Sprintf("barrier of %d", someTasks), barrier.with, []string{"does not run here"}}
		best := 0.0
		for range minRounds {
			figures, err := barrier.measure()
			if err != nil {
				b.Log(err)
				break
			}
			if best == 0 || figures[0] < best {
				best = figures[0]
				row.figures[0] = digits(best/1000) + " µs"
			}
		}
		c.alike = append(c.alike, row)
	}
}

// caller is a library that calls functions in other processes. call returns its rate per second,
// and the seconds for one call.
type caller struct {
	with string
	call func() ([]float64, error)
}

func (c *comparison) closures(b *testing.B) []caller {
	b.Helper()
	return []caller{
		{"clusterrun, Python", func() ([]float64, error) {
			figures := filepath.Join(c.Dir, "figures")
			argv, err := WithChief(harness.Clusterrun(b), c.StateDir())(c.Dir, 5, []string{Python, writeScript(b, "closures_clusterrun", c.Dir), figures})
			require.NoError(b, err)
			if _, err := c.Time(b.Context(), argv); err != nil {
				return nil, err
			}
			text, err := os.ReadFile(figures)
			require.NoError(b, err)
			return numbers(string(text))
		}},
		{"Celery on Redis", func() ([]float64, error) { return runScript(b, "closures_celery") }},
		{"Dask", func() ([]float64, error) { return runScript(b, "closures_dask") }},
	}
}

//go:embed *.py
var scripts embed.FS

// writeScript writes the named script to a directory, and returns its path.
func writeScript(b *testing.B, name, dir string) string {
	b.Helper()
	text, err := scripts.ReadFile(name + ".py")
	require.NoError(b, err)
	path := filepath.Join(dir, name+".py")
	require.NoError(b, os.WriteFile(path, text, 0o600))
	return path
}

func runBarrierScript(b *testing.B, name string) ([]float64, error) {
	b.Helper()
	return runScript(b, name, strconv.Itoa(someTasks), strconv.Itoa(barrierTurns))
}

// runScript runs a script and returns the numbers in its last line of output. If a module is missing,
// the error names it.
func runScript(b *testing.B, name string, args ...string) ([]float64, error) {
	b.Helper()
	dir := b.TempDir()
	cmd := exec.CommandContext(b.Context(), Python, append([]string{writeScript(b, name, dir)}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PYTHONPATH="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = endBound
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s does not run here: %w: %s", name, err, lastLine(stderr.String()))
	}
	return numbers(lastLine(string(out)))
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func numbers(line string) (list []float64, err error) {
	for _, word := range strings.Fields(line) {
		n, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	if len(list) < 1 {
		return nil, fmt.Errorf("%q has no numbers", line)
	}
	return list, nil
}
