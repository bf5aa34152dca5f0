package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The programs report with a line in the pipe marks, and exit when the last writer closes the pipe
// hold. $1 is the directory with both pipes.
const (
	// holding reports its pid. It opens hold first, before the writer can close it.
	holding = `exec 4< "$1/hold"; echo $$ > "$1/marks"; read x <&4; exit 0`
	// failingOnce fails on its first run.
	failingOnce = `if [ ! -e "$1/failed" ]; then : > "$1/failed"; echo $$ > "$1/marks"; exit 1; fi; ` + holding
	// endingFirst exits first if it is the chief. Otherwise, it fails if it is the first to create
	// a directory. The pipe gone shows when all have exited.
	endingFirst = `exec 3> "$1/gone" 4< "$1/hold"
case $2.$CLUSTERRUN_TASK_TYPE in
chief.chief) code=0 ;;
chief.?*) code= ;;
*) code=; if mkdir "$1/first" 2> /dev/null; then code=3; fi ;;
esac
echo $$ > "$1/marks"
if [ -n "$code" ]; then read x < "$1/begin"; printf x >&3; exit $code; fi
read x <&4`
)

// copies are processes of one program that a launcher started.
type copies struct {
	*command
	dir                       string
	marks, hold, gone, signal *os.File
	lines                     *bufio.Reader
}

// launch starts n copies of a program with a launcher. Each gets the pipes' directory as its last
// argument.
func (p *Place) launch(ctx context.Context, start Start, n int, argv []string, after ...string) (*copies, error) {
	dir, err := os.MkdirTemp(p.Dir, "copies-")
	if err != nil {
		return nil, err
	}
	c := &copies{dir: dir}
	if err := c.begin(ctx, p, start, n, append(append(argv, dir), after...)); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *copies) begin(ctx context.Context, p *Place, start Start, n int, argv []string) (err error) {
	for name, pipe := range map[string]**os.File{"marks": &c.marks, "hold": &c.hold, "begin": &c.signal} {
		if *pipe, err = makePipe(c.dir, name, os.O_RDWR); err != nil {
			return err
		}
	}
	// Read only, so that EOF follows when the last writer exits.
	if c.gone, err = makePipe(c.dir, "gone", os.O_RDONLY|syscall.O_NONBLOCK); err != nil {
		return err
	}
	c.lines = bufio.NewReader(c.marks)
	if argv, err = start(c.dir, n, argv); err != nil {
		return err
	}
	if c.command, err = p.start(ctx, argv); err != nil {
		return err
	}
	go c.markEnd()
	return nil
}

// close removes the pipes. Copies that are still running exit.
func (c *copies) close() {
	for _, pipe := range []*os.File{c.marks, c.hold, c.signal, c.gone} {
		_ = pipe.Close() // a nil pipe's error does not matter
	}
	_ = os.RemoveAll(c.dir)
}

func script(text string) []string { return []string{"/bin/sh", "-c", text, "copy"} }

// release lets the copies exit.
func (c *copies) release() { _ = c.hold.Close() }

// await reads n marks. It fails if the launcher exits first, or if ctx is done.
func (c *copies) await(ctx context.Context, n int) (marks []string, at time.Time, err error) {
	for len(marks) < n {
		line, err := c.lines.ReadString('\n')
		switch line = strings.TrimSpace(line); {
		case err != nil:
			return nil, at, err
		case line != "":
			marks = append(marks, line)
		case ctx.Err() != nil:
			return nil, at, ctx.Err()
		default:
			return nil, at, c.failed(fmt.Errorf("it has ended, and %d of %d processes have reported", len(marks), n))
		}
	}
	return marks, time.Now(), nil
}

// markEnd writes an empty line after the marks when the launcher exits. It also returns when ctx
// is done.
func (c *copies) markEnd() {
	<-c.ended
	_, _ = c.marks.WriteString("\n") // the pipe lost its reader
}

// numbers awaits n marks that are numbers.
func (c *copies) numbers(ctx context.Context, n int) ([]int, time.Time, error) {
	marks, at, err := c.await(ctx, n)
	list := make([]int, len(marks))
	for i, text := range marks {
		number, parse := strconv.Atoi(text)
		err = errors.Join(err, parse)
		list[i] = number
	}
	return list, at, err
}

// finish lets the copies exit, and waits for the launcher, which is stopped if it stays.
func (c *copies) finish(stays bool) error {
	c.release()
	if stays {
		c.end()
		return nil
	}
	return c.wait()
}

// abort stops the launcher and the copies, even after an error.
func (c *copies) abort() {
	c.release()
	c.end()
	c.close()
}

// exitedWith ignores an expected failure of a command.
func exitedWith(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}
