package stacks

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

const (
	// answerBound limits the wait for a process's answer.
	answerBound = 2 * time.Second
	// answerQuiet is how long a file must stop growing to count as complete, because writers do not
	// mark the end.
	answerQuiet = 200 * time.Millisecond
	answerPoll  = 20 * time.Millisecond
	// maxAnswer limits an answer's size, in bytes.
	maxAnswer = 512 << 10
)

// pendingAnswer is an asked process's answer.
type pendingAnswer struct {
	*process
	// file remains readable after the process exits.
	file       *os.File
	from, size int64
	grew       time.Time
	done       bool
}

// ask signals the processes that have opted in, and collects what they write.
func ask(ctx context.Context, processes []*process) {
	var open []*pendingAnswer
	for _, p := range processes {
		if p.answers == "" {
			continue
		}
		if a, err := send(p); err != nil {
			p.silence = err.Error()
		} else {
			open = append(open, a)
		}
	}
	if len(open) == 0 {
		return
	}
	await(ctx, open)
	for _, a := range open {
		a.collect()
	}
}

func send(p *process) (*pendingAnswer, error) {
	if stopped(p.Stat) {
		// It would answer too late, after it is continued.
		return nil, errors.New("not asked: it is stopped")
	}
	f, err := os.Open(p.answers)
	if err != nil {
		return nil, errors.New("not asked: " + err.Error())
	}
	a := &pendingAnswer{process: p, file: f}
	if err := a.signal(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return a, nil
}

func (a *pendingAnswer) signal() error {
	p := a.process
	info, err := a.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.New("not asked: the file for its answer has been deleted")
	}
	a.from, a.size = info.Size(), info.Size()
	fd, err := unix.PidfdOpen(p.pid, 0)
	switch {
	case err == nil:
		defer unix.Close(fd)
	case errors.Is(err, unix.ESRCH):
		return errEnded
	}
	// Check again, now that the process ID cannot be reused.
	if now, err := proc.ReadStat(p.pid); err != nil || now.Ticks != p.Ticks {
		return errEnded
	}
	if s, err := readStatus(proc.Dir(p.pid)); err != nil || !s.catches(Signal) {
		return errors.New("not asked: it no longer handles the signal")
	}
	if err == nil {
		err = unix.PidfdSendSignal(fd, unix.Signal(Signal), nil, 0)
	} else {
		err = unix.Kill(p.pid, unix.Signal(Signal)) // pidfds are not supported
	}
	switch {
	case errors.Is(err, unix.ESRCH):
		return errEnded
	case err != nil:
		return errors.New("not asked: " + err.Error())
	}
	return nil
}

var errEnded = errors.New("not asked: it has exited")

// await returns when all processes have answered or exited, or on timeout.
func await(ctx context.Context, open []*pendingAnswer) {
	ctx, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	ticker := time.NewTicker(answerPoll)
	defer ticker.Stop()
	for {
		waiting := false
		for _, a := range open {
			waiting = !a.look() || waiting
		}
		if !waiting {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// look reports whether the answer is complete.
func (a *pendingAnswer) look() bool {
	if a.done {
		return true
	}
	// Read the state before the size, so that the file of a process that has exited includes
	// everything that it wrote.
	s, err := proc.ReadStat(a.pid)
	ended := err != nil || s.Ticks != a.Ticks || s.Dead()
	info, err := a.file.Stat()
	if err != nil {
		a.done = true
		return true
	}
	if info.Size() != a.size {
		a.size, a.grew = info.Size(), time.Now()
	}
	a.done = ended || !a.grew.IsZero() && time.Since(a.grew) >= answerQuiet
	return a.done
}

func (a *pendingAnswer) collect() {
	defer a.file.Close()
	text, err := io.ReadAll(io.NewSectionReader(a.file, a.from, maxAnswer+1))
	switch {
	case len(text) > maxAnswer:
		a.answer = strings.ToValidUTF8(string(text[:maxAnswer]), "?")
		a.silence = "the rest of its answer is too long"
		if target, err := os.Readlink(a.answers); err == nil && !isInMemory(a.answers) {
			a.silence = "the rest of its answer is in " + target
		}
	case len(text) > 0:
		a.answer = strings.ToValidUTF8(string(text), "?")
	case err != nil:
		a.silence = "cannot read its answer: " + err.Error()
	case a.done:
		a.silence = "it exited without answering"
	default:
		a.silence = "it did not answer within " + answerBound.String()
	}
	if a.silence == "" && isInMemory(a.answers) && len(parsePython(a.answer)) == 0 {
		a.silence = "the main thread is not shown: Python reports the 100 newest threads"
	}
}

func isInMemory(link string) bool {
	target, err := os.Readlink(link)
	return err == nil && strings.HasPrefix(target, "/memfd:")
}
