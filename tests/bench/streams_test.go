package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/peers"
)

const (
	teeTasks = 4
	teeLines = 200_000 // of each
)

// BenchmarkTee measures 4 processes that write 200,000 lines of 100 bytes each, as fast as they
// can. The benchmark reads the console's pipe and checks every line. All figures are lines of
// all processes by time, of the whole command with its start and its end, and from the first
// line to the last. The floor is a bare program that puts prefixes before the lines of 4 pipes;
// goal: half as fast. The peer is torchrun; goal: 10 times as fast. The memory of all processes
// of clusterrun, the server included, grows by 20 MiB at most while the lines come.
func BenchmarkTee(b *testing.B) {
	self, err := os.Executable()
	require.NoError(b, err)
	home := b.TempDir()
	timed(b, home, harness.Clusterrun(b), "run", "-n", "1", "--", "true")
	b.Cleanup(func() { stopOwnServer(b, home) })
	writer := []string{self, "write-lines", strconv.Itoa(teeLines)}
	contenders := map[string][]string{
		"ours":  append([]string{harness.Clusterrun(b), "run", "-n", strconv.Itoa(teeTasks), "--"}, writer...),
		"floor": append([]string{self, "prefix", strconv.Itoa(teeTasks)}, writer...),
	}
	if torchrun := peers.Torchrun(); torchrun != nil {
		contenders["torchrun"] = append(append(torchrun, "--nproc_per_node", strconv.Itoa(teeTasks),
			"--redirects", "1", "--tee", "1", "--log_dir", filepath.Join(home, "torchrun"), "--no_python"), writer...)
	}
	const rounds = 5
	whole, steady := map[string][]time.Duration{}, map[string][]time.Duration{}
	grown, wrong := 0.0, 0
	for range rounds {
		for _, name := range []string{"floor", "ours", "torchrun"} {
			if contenders[name] == nil || name == "torchrun" && len(whole[name]) == 2 {
				continue
			}
			t := readTee(b, home, contenders[name], func() []int { return ownProcesses(home) })
			whole[name], steady[name] = append(whole[name], t.whole), append(steady[name], t.steady)
			switch name {
			case "torchrun":
				wrong = max(wrong, t.wrong) // it tears lines that were incomplete when it looked
			case "ours":
				grown = max(grown, t.grownMiB)
				fallthrough
			default:
				require.Zero(b, t.wrong, "lines of %s are torn or lost", name)
			}
		}
	}
	rate := func(d map[string][]time.Duration, name string) float64 {
		return teeTasks * teeLines / median(d[name]).Seconds()
	}
	b.ReportMetric(rate(whole, "ours"), "lines/s")
	b.ReportMetric(rate(steady, "ours"), "lines/s-steady")
	b.ReportMetric(rate(whole, "floor"), "lines/s-floor")
	b.ReportMetric(rate(whole, "ours")/rate(whole, "floor"), "of-floor")
	b.ReportMetric(rate(steady, "ours")/rate(steady, "floor"), "of-floor-steady")
	if whole["torchrun"] != nil {
		b.ReportMetric(rate(whole, "torchrun"), "lines/s-torchrun")
		b.ReportMetric(rate(whole, "ours")/rate(whole, "torchrun"), "times-torchrun")
		b.ReportMetric(rate(steady, "ours")/rate(steady, "torchrun"), "times-torchrun-steady")
		b.ReportMetric(float64(wrong), "torn-by-torchrun")
	} else {
		b.Log("torchrun is not installed (Debian: python3-torch)")
	}
	b.ReportMetric(grown, "MiB-grown")
	b.ReportMetric(0, "ns/op")
}

type teeFigures struct {
	whole, steady time.Duration
	grownMiB      float64
	wrong         int // lines that were torn, lost or out of order
}

// readTee runs a command and checks each line of its stdout. It also measures the memory of the
// command and of the processes that watched returns.
func readTee(b *testing.B, home string, argv []string, watched func() []int) teeFigures {
	b.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = harness.Env(home), home
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	require.NoError(b, err)
	started := time.Now()
	require.NoError(b, cmd.Start())
	memory := sampleMemory(func() []int {
		return slices.Compact(slices.Sorted(slices.Values(append(watched(), cmd.Process.Pid))))
	})
	in := bufio.NewReaderSize(pipe, 256<<10)
	next := map[string]*int{}
	want := numberedLine(0)
	var first, last time.Time
	wrong, right := 0, 0
	var prefix []byte
	var expected *int
	for {
		line, err := in.ReadSlice('\n')
		if err == io.EOF {
			require.Empty(b, line)
			break
		}
		require.NoError(b, err)
		if first.IsZero() {
			first = time.Now()
			memory.begin()
		}
		head := len(line) - lineWidth
		if head <= 0 || !bytes.Equal(line[head+9:], want[9:]) {
			wrong++
			continue
		}
		if head != len(prefix) || !bytes.Equal(line[:head], prefix) {
			prefix = append(prefix[:0], line[:head]...)
			if next[string(prefix)] == nil {
				next[string(prefix)] = new(int)
			}
			expected = next[string(prefix)]
		}
		if i := number(line[head:]); i == *expected {
			*expected++
			right++
		} else {
			*expected = i + 1
		}
	}
	last = time.Now()
	grown := memory.end()
	require.NoError(b, cmd.Wait(), "%s", stderr.String())
	took := time.Since(started)
	return teeFigures{whole: took, steady: last.Sub(first), grownMiB: grown, wrong: wrong + teeTasks*teeLines - right}
}

// number returns the number at the start of a line.
func number(line []byte) (n int) {
	for _, c := range line[:9] {
		n = 10*n + int(c-'0')
	}
	return n
}

// memory samples the resident memory of processes.
type memory struct {
	watched func() []int
	started chan struct{}
	stop    chan struct{}
	grown   chan float64
}

func sampleMemory(watched func() []int) *memory {
	m := &memory{watched: watched, started: make(chan struct{}), stop: make(chan struct{}), grown: make(chan float64, 1)}
	go m.run()
	return m
}

func (m *memory) begin() { close(m.started) }

// end is by how many MiB the memory has grown at most, counted for each process
// that was there at the beginning.
func (m *memory) end() float64 {
	close(m.stop)
	return <-m.grown
}

func (m *memory) run() {
	select {
	case <-m.started:
	case <-m.stop:
		m.grown <- 0
		return
	}
	pids := m.watched()
	before := residentMiB(pids)
	most := before
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			most = max(most, residentMiB(pids))
		case <-m.stop:
			m.grown <- most - before
			return
		}
	}
}

// ownProcesses returns the clusterrun processes whose environment has the home, without those
// that write lines.
func ownProcesses(home string) (pids []int) {
	for _, pid := range harness.Alive("HOME=" + home) {
		if line := harness.Cmdline(pid); strings.Contains(line, "clusterrun") && !strings.Contains(line, "write-lines") ||
			strings.Contains(line, "clusterrun run") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func residentMiB(pids []int) (sum float64) {
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			continue
		}
		pages, _ := strconv.Atoi(strings.Fields(string(b))[1])
		sum += float64(pages*os.Getpagesize()) / (1 << 20)
	}
	return sum
}
