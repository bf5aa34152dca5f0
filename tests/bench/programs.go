package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
)

// programs are the programs used in measurements, by name. A measuring executable can be started
// as each of them.
var programs = map[string]func(args []string) error{
	"barrier": func(args []string) error {
		t, err := task.Current()
		if err != nil {
			return err
		}
		return rounds(args, func() error {
			_, err := t.Barrier(context.Background(), "bench", task.Local())
			return err
		})
	},
	"exchange": func(args []string) error {
		if len(args) < 2 {
			return errors.New("exchange wants a socket, a number and a directory")
		}
		c, err := net.Dial("unix", args[0])
		if err != nil {
			return err
		}
		b := []byte{1}
		return rounds(args[1:], func() error {
			if _, err := c.Write(b); err != nil {
				return err
			}
			_, err := c.Read(b)
			return err
		})
	},
	"serve": func(args []string) error {
		t, err := task.Current()
		if err != nil {
			return err
		}
		f := task.NewFunctions()
		if err := f.Register("f", func(_ context.Context, n int) (int, error) { return n, nil }); err != nil {
			return err
		}
		if len(args) != 1 {
			return errors.New("serve wants a directory")
		}
		ctx, err := held(args[0])
		if err != nil {
			return err
		}
		if err := mark(args[0], "serving"); err != nil {
			return err
		}
		if err := t.Serve(ctx, f); ctx.Err() == nil {
			return err
		}
		return nil
	},
}

// Program runs the named program.
func Program(name string, args []string) error {
	p, ok := programs[name]
	if !ok {
		return fmt.Errorf("there is no program %q", name)
	}
	return p(args)
}

// warmUp is the number of unmeasured first rounds.
const warmUp = 100

// rounds measures barrier rounds. Its arguments are a count, and the directory with the pipe that
// receives their median in nanoseconds.
func rounds(args []string, barrier func() error) error {
	if len(args) != 2 {
		return errors.New("the rounds of a barrier want a number and a directory")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	took := make(Series, 0, n)
	for i := range warmUp + n {
		started := time.Now()
		if err := barrier(); err != nil {
			return err
		}
		if i >= warmUp {
			took = append(took, time.Since(started))
		}
	}
	return mark(args[1], strconv.FormatInt(took.Median().Nanoseconds(), 10))
}

// mark writes a line to the pipe marks in a directory.
func mark(dir, line string) error {
	marks, err := os.OpenFile(filepath.Join(dir, "marks"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer marks.Close()
	_, err = fmt.Fprintln(marks, line)
	return err
}

// held returns a context that is canceled when the last writer closes the pipe hold in a directory.
func held(dir string) (context.Context, error) {
	hold, err := os.Open(filepath.Join(dir, "hold"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		defer hold.Close()
		_, _ = io.Copy(io.Discard, hold)
	}()
	return ctx, nil
}
