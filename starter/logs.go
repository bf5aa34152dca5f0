package starter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
)

// Output is a piece of process output, in whole lines unless a line is unterminated.
type Output struct {
	Task string
	// Attempt numbers the task's processes from 0.
	Attempt int
	Stderr  bool
	Data    []byte
}

// placesEvery is the interval between checks for new output files.
const placesEvery = time.Second

// Logs passes the output of all the run's processes to show, one piece at a time, until the run
// has ended and all output was passed. It reads the files on this machine directly and the rest
// from the hosts that serve them. The error reports output that could not be read, not the run's
// outcome; see [Run.Wait].
func (r *Run) Logs(ctx context.Context, show func(Output)) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = r.Wait(waiting)
	}()
	l := &logReader{show: show, names: map[int]string{}, followed: map[string]bool{}}
	defer l.close()
	for {
		var s *Status
		if err := Patiently(ctx, func(error) {}, func() (err error) { s, err = r.Status(ctx); return err }); err != nil {
			return err
		}
		f := r.FilesOf(s)
		f.Learn(ctx)
		l.add(f)
		if !s.Open {
			return l.finish(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
		case <-time.After(placesEvery):
		}
	}
}

// logReader reads a run's output from local directories and from hosts.
type logReader struct {
	mu       sync.Mutex // serialises show, and guards names and errs
	show     func(Output)
	names    map[int]string // by rank
	errs     []error
	followed map[string]bool // directories and hosts
	stop     []func(context.Context) error
	clients  []*hostservice.Client
}

// add starts reading the locations that are new.
func (l *logReader) add(f *Files) {
	l.mu.Lock()
	for _, t := range f.status.Tasks {
		l.names[t.Rank] = t.Name
	}
	l.mu.Unlock()
	reported := map[string]error{} // by host, why its files are not local
	for _, p := range f.Processes() {
		reported[p.Host] = f.Here(p.Dir)
		runDir, _, _, _ := tasklog.SplitProcessDir(p.Dir)
		if reported[p.Host] == nil && !l.followed[runDir] {
			l.followed[runDir] = true
			l.stop = append(l.stop, tasklog.Follow(runDir, l.deliver, tasklog.FollowOptions{Hold: tasklog.WholeLines, OnError: l.fail}).Stop)
		}
	}
	served := map[string]bool{}
	for _, service := range f.services {
		served[service.Host] = true
		// Until the host reports, it is unknown whether its files are on this machine.
		why, known := reported[service.Host]
		if l.followed[service.Address] || known && why == nil || !known && f.status.Open {
			continue
		}
		l.followed[service.Address] = true
		c := hostservice.NewClient(service, f.status.ExecutionID)
		l.clients = append(l.clients, c)
		l.stop = append(l.stop, c.Follow(l.deliver, hostservice.FollowOptions{WholeLines: true, Live: f.status.Open, OnError: l.fail}).Stop)
	}
	for host, why := range reported {
		if why != nil && !served[host] && !f.status.Open {
			l.fail(fmt.Errorf("output on host %s, which does not serve it: %w", host, why))
		}
	}
}

func (l *logReader) deliver(c tasklog.Chunk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show(Output{Task: l.names[c.Rank], Attempt: c.Attempt, Stderr: c.Stderr, Data: c.Data})
}

func (l *logReader) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

// finish reads the remaining output.
func (l *logReader) finish(ctx context.Context) error {
	for _, stop := range l.stop {
		if err := stop(ctx); err != nil {
			l.fail(err)
		}
	}
	l.stop = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.errs...)
}

// close stops reading.
func (l *logReader) close() {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for _, stop := range l.stop {
		_ = stop(done)
	}
	for _, c := range l.clients {
		c.Close()
	}
}
