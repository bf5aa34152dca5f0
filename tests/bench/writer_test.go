package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/clusterrun/clusterrun/tests/measure"
)

// TestMain makes this program also the programs that are measured: a process that
// writes lines, and the least that can be done with the output of some.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "program":
			exit(measure.Program(os.Args[2], os.Args[3:]))
		case "write-lines":
			exit(writeLines(os.Args[2]))
		case "write-slowly":
			exit(writeSlowly(os.Args[2]))
		case "prefix":
			exit(prefix(os.Args[2], os.Args[3:]))
		}
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// lineWidth is the length of a line with its end.
const lineWidth = 100

// numberedLine is "000000042 xxx…".
func numberedLine(i int) []byte {
	return fmt.Appendf(nil, "%09d %s\n", i, bytes.Repeat([]byte("x"), lineWidth-11))
}

// writeLines writes numbered lines, in pieces that do not end where lines do.
func writeLines(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(os.Stdout, 64<<10)
	line := numberedLine(0)
	for i := range n {
		for at, rest := 8, i; at >= 0; at, rest = at-1, rest/10 {
			line[at] = byte('0' + rest%10)
		}
		_, _ = w.Write(line)
	}
	return w.Flush()
}

// writeSlowly writes lines one by one, like a program without output buffers, and then writes
// to stderr how many microseconds that took.
func writeSlowly(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	line := numberedLine(0)
	started := time.Now()
	for range n {
		if _, err := os.Stdout.Write(line); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(os.Stderr, time.Since(started).Microseconds())
	return err
}

// prefix starts some processes of one command, and puts a prefix before the
// lines that they write to their pipes.
func prefix(count string, argv []string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	for rank := range n {
		cmd := exec.Command(argv[0], argv[1:]...)
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		start := fmt.Appendf(nil, "[worker-%d]:    ", rank)
		wg.Go(func() {
			in := bufio.NewReaderSize(pipe, 64<<10)
			for {
				line, err := in.ReadSlice('\n')
				if err == io.EOF {
					break
				}
				mu.Lock()
				_, _ = out.Write(start)
				_, _ = out.Write(line)
				mu.Unlock()
			}
			_ = cmd.Wait()
		})
	}
	wg.Wait()
	return out.Flush()
}
