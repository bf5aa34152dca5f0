package stacks

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Task is a task to capture.
type Task struct {
	Name string
	// PID is the ID of its process, a session leader.
	PID int
	// Head holds the file's first lines.
	Head []string
	// LogDir is the directory where its processes may answer, or empty.
	LogDir string
	// Dir is the file's directory, within Root, and links must not lead out of Root. Prefix is the
	// start of the file's name.
	Root, Dir, Prefix string
	// User owns these directories. nil means our own user.
	User *hostuser.User
	// Brief reports whether only the stack is wanted, not the file.
	Brief bool
}

// Result is the result of capturing one task.
type Result struct {
	Name string
	// File is the path of the capture.
	File string
	// Stack is the stack of the main thread in the process that does the task's work, or empty if
	// unknown.
	Stack stacktree.Stack
	Err   error
}

// ErrGone is returned if a task's process is not alive.
var ErrGone = errors.New("its process has exited")

var (
	errLate = errors.New("not done, for lack of time")
	// errWrite is returned if writing takes too long, perhaps because the disk hangs.
	errWrite = errors.New("its capture could not be written in time")
)

const (
	// atOnce is how many processes are read at a time.
	atOnce = 16
	// reserve is the time reserved for answers and writing.
	reserve = answerBound + 500*time.Millisecond
)

// Capture captures tasks in order, starting each while earlier tasks' processes are about to
// answer. It returns a result for each task. It returns no later than when ctx is done, so ctx
// should have a deadline. CookieVar names the environment variable with the supervisor's cookie.
func Capture(ctx context.Context, tasks []Task, cookieVar string) ([]Result, error) {
	all, err := readTable()
	if err != nil {
		return nil, err
	}
	var leaders []int
	for _, t := range tasks {
		if s, ok := all[t.PID]; ok && s.Session == t.PID && !s.Dead() {
			leaders = append(leaders, t.PID)
		}
	}
	of := members(ctx, all, leaders, cookieVar)

	reading := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		reading, cancel = context.WithDeadline(ctx, deadline.Add(-reserve))
		defer cancel()
	}
	type numbered struct {
		i int
		Result
	}
	done := make(chan numbered, len(tasks))
	slots := make(chan struct{}, atOnce)
	results := make([]Result, len(tasks))
	started := 0
	for i, t := range tasks {
		results[i] = Result{Name: t.Name, Err: errLate}
		pids := of[t.PID]
		if len(pids) == 0 {
			results[i].Err = ErrGone
			continue
		}
		if reading.Err() != nil {
			continue
		}
		results[i].Err = errWrite
		r := &report{Task: t, taken: time.Now()}
		rest := r.read(reading, all, pids, slots)
		started++
		go func() {
			rest.Wait()
			var file string
			err := t.User.Do(func() error {
				ask(ctx, r.processes)
				return nil
			})
			if err == nil {
				r.unwind(reading)
			}
			if err == nil && !t.Brief {
				err = t.User.Do(func() (err error) {
					file, err = r.save()
					return err
				})
			}
			done <- numbered{i, Result{Name: t.Name, File: file, Stack: r.stack(), Err: err}}
		}()
	}
	for range started {
		select {
		case r := <-done:
			results[r.i] = r.Result
		case <-ctx.Done():
			return results, nil
		}
	}
	return results, nil
}

// read starts reading a task's processes, each as soon as a slot is free.
func (r *report) read(ctx context.Context, all table, pids []int, slots chan struct{}) *sync.WaitGroup {
	if len(pids) > maxProcesses {
		r.unshown = len(pids) - maxProcesses
		pids = pids[:maxProcesses]
	}
	var group sync.WaitGroup
	processes := make([]*process, len(pids))
	n := 0
	for i, pid := range pids {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			r.unshown += len(pids) - i
			r.gaps = append(r.gaps, "there was not enough time to read all processes")
			break
		}
		n++
		group.Go(func() {
			defer func() { <-slots }()
			processes[i] = readProcess(ctx, pid, all[pid], r.LogDir)
		})
	}
	r.processes = processes[:n]
	return &group
}
