package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/units"
)

const (
	someTasks = 8
	manyTasks = 65
	teeTasks  = 4
	teeLines  = 100_000
	// leftAfter is when the processes left by a killed launcher are counted.
	leftAfter = 5 * time.Second
)

// work is something that launchers are measured by.
type work struct {
	name, unit string
	more       bool // is better
	median     bool // the first mark may be read late, so there is no best round
	once       bool
	start      func(*Launcher) Start // returns nil if the launcher cannot do it
	measure    func(context.Context, *Launcher) (float64, error)
}

// inMS converts a measured time to milliseconds.
func inMS(one func(context.Context, *Launcher) (time.Duration, error)) func(context.Context, *Launcher) (float64, error) {
	return func(ctx context.Context, l *Launcher) (float64, error) {
		took, err := one(ctx, l)
		return ms(took), err
	}
}

// works lists what launchers are measured by. launches are numbers of copies.
func (p *Place) works(launches ...int) (list []work) {
	launch := func(l *Launcher) Start { return l.Launch }
	for _, n := range []int{1, someTasks} {
		list = append(list, work{
			name: fmt.Sprintf("`true` in %s, the whole command", units.Count(n, "process", "processes")), unit: "ms",
			start: func(l *Launcher) Start {
				if l.Stays {
					return nil
				}
				return l.Launch
			},
			measure: inMS(func(ctx context.Context, l *Launcher) (time.Duration, error) { return p.Whole(ctx, l.Launch, n) }),
		})
	}
	for _, n := range launches {
		list = append(list, work{
			name: fmt.Sprintf("launch, until %d execute", n), unit: "ms", start: launch,
			measure: inMS(func(ctx context.Context, l *Launcher) (time.Duration, error) { return p.Launch(ctx, l, n) }),
		})
	}
	return append(list,
		work{
			name: "restart of a failed process, the median", unit: "ms", median: true,
			start: func(l *Launcher) Start { return l.Restart }, measure: inMS(p.Restart),
		},
		work{
			name: fmt.Sprintf("one of %d fails, until all have ended, the median", someTasks), unit: "ms", median: true,
			start: func(l *Launcher) Start { return l.End },
			measure: inMS(func(ctx context.Context, l *Launcher) (time.Duration, error) {
				return p.EndAfter(ctx, l.End, someTasks, "failure")
			}),
		},
		work{
			name: "memory for each further process", unit: "KiB", start: launch, once: true,
			measure: func(ctx context.Context, l *Launcher) (float64, error) {
				one, err := p.Memory(ctx, l, 1)
				if err != nil {
					return 0, err
				}
				many, err := p.Memory(ctx, l, manyTasks)
				return max(0, float64(many-one)/(manyTasks-1)/1024), err
			},
		},
	)
}

// furtherWorks lists what only different launchers are compared by.
func (p *Place) furtherWorks() []work {
	launch := func(l *Launcher) Start { return l.Launch }
	return []work{
		{
			name: fmt.Sprintf("output of %d with prefixes, 1000 lines of 100 bytes in a second", teeTasks), more: true,
			start: func(l *Launcher) Start { return l.Tee }, measure: p.tee,
		},
		{
			name: "memory of the launcher with 1 process", unit: "MiB", start: launch, once: true,
			measure: func(ctx context.Context, l *Launcher) (float64, error) {
				size, err := p.Memory(ctx, l, 1)
				return float64(size) / (1 << 20), err
			},
		},
		{
			name: fmt.Sprintf("of %d processes left %s after `kill -9` of the launcher", someTasks, leftAfter), start: launch, once: true,
			measure: func(ctx context.Context, l *Launcher) (float64, error) {
				left, err := p.Left(ctx, l, someTasks, leftAfter)
				return float64(left), err
			},
		},
	}
}

// Launch returns how long a launcher takes from its start until n copies of a program are
// running.
func (p *Place) Launch(ctx context.Context, l *Launcher, n int) (time.Duration, error) {
	started := time.Now()
	c, err := p.launch(ctx, l.Launch, n, script(holding))
	if err != nil {
		return 0, err
	}
	defer c.abort()
	_, at, err := c.await(ctx, n)
	if err != nil {
		return 0, err
	}
	return at.Sub(started), c.finish(l.Stays)
}

// Restart returns the time from a program's failure to its next start.
func (p *Place) Restart(ctx context.Context, l *Launcher) (time.Duration, error) {
	c, err := p.launch(ctx, l.Restart, 1, script(failingOnce))
	if err != nil {
		return 0, err
	}
	defer c.abort()
	_, failed, err := c.await(ctx, 1)
	if err != nil {
		return 0, err
	}
	_, again, err := c.await(ctx, 1)
	if err != nil {
		return 0, err
	}
	return again.Sub(failed), c.finish(l.Stays)
}

// EndAfter returns how long the last of n copies takes to exit after a failure, or after the chief's
// exit.
func (p *Place) EndAfter(ctx context.Context, start Start, n int, after string) (time.Duration, error) {
	c, err := p.launch(ctx, start, n, script(endingFirst), after)
	if err != nil {
		return 0, err
	}
	defer c.abort()
	if _, _, err = c.await(ctx, n); err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.gone.SetReadDeadline(time.Now()) })
	defer stop()
	if _, err := c.signal.WriteString("end\n"); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(c.gone, make([]byte, 1)); err != nil {
		return 0, err
	}
	ended := time.Now()
	if _, err := io.ReadAll(c.gone); err != nil {
		return 0, err
	}
	took := time.Since(ended)
	return took, exitedWith(c.wait())
}

// Memory returns a launcher's memory while n copies of a program are running, including the
// processes returned by Beside, but without the copies.
func (p *Place) Memory(ctx context.Context, l *Launcher, n int) (int64, error) {
	c, err := p.launch(ctx, l.Launch, n, script(holding))
	if err != nil {
		return 0, err
	}
	defer c.abort()
	pids, _, err := c.numbers(ctx, n)
	if err != nil {
		return 0, err
	}
	tree := below(c.Process.Pid, pids)
	if l.Beside != nil {
		tree = append(tree, l.Beside()...)
	}
	size, err := Resident(tree)
	if err != nil {
		return 0, err
	}
	return size, c.finish(l.Stays)
}

// Left kills a launcher that has started n copies, and counts the copies that are left after a
// while.
func (p *Place) Left(ctx context.Context, l *Launcher, n int, after time.Duration) (left int, err error) {
	c, err := p.launch(ctx, l.Launch, n, script(holding))
	if err != nil {
		return 0, err
	}
	defer c.abort()
	pids, _, err := c.numbers(ctx, n)
	if err != nil {
		return 0, err
	}
	handles := make([]int, 0, n)
	defer func() {
		for _, fd := range handles {
			_ = syscall.Close(fd)
		}
	}()
	for _, pid := range pids {
		fd, err := pidfd(pid)
		if err != nil {
			return 0, fmt.Errorf("copy %d: %w", pid, err)
		}
		handles = append(handles, fd)
	}
	if err := c.Process.Kill(); err != nil {
		return 0, err
	}
	killed := time.Now()
	for _, fd := range handles {
		ended, err := endsWithin(fd, time.Until(killed.Add(after)))
		if err != nil {
			return 0, err
		}
		if !ended {
			left++
		}
	}
	return left, nil
}

// tee returns how many thousand lines per second reach a file.
func (p *Place) tee(ctx context.Context, l *Launcher) (float64, error) {
	dir, err := os.MkdirTemp(p.Dir, "tee-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	lines := filepath.Join(dir, "lines")
	if err := os.WriteFile(lines, bytes.Repeat([]byte(strings.Repeat("0", 99)+"\n"), teeLines), 0o600); err != nil {
		return 0, err
	}
	argv, err := l.Tee(dir, teeTasks, []string{"cat", lines})
	if err != nil {
		return 0, err
	}
	size, took, err := p.Output(ctx, argv)
	if err == nil && size < teeTasks*teeLines*100 {
		err = fmt.Errorf("of %d bytes %d came out", teeTasks*teeLines*100, size)
	}
	return teeTasks * teeLines / took.Seconds() / 1000, err
}
