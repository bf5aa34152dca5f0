package starter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/starter/files"
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
	var mu sync.Mutex // serialises show, and guards names and errs
	names := map[int]string{}
	var errs []error
	of := r.Files(&Status{RunID: r.ID, Open: true})
	defer of.Close()
	output := of.Follow(files.Options{Live: true, WholeLines: true, OnError: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}}, func(c tasklog.Chunk) {
		mu.Lock()
		defer mu.Unlock()
		show(Output{Task: names[c.Rank], Attempt: c.Attempt, Stderr: c.Stderr, Data: c.Data})
	})
	defer output.Close()
	for {
		var s *Status
		if err := servererror.Patiently(ctx, func(error) {}, func() (err error) { s, err = r.Status(ctx); return err }); err != nil {
			return err
		}
		mu.Lock()
		for _, t := range s.Tasks {
			names[t.Rank] = t.Name
		}
		mu.Unlock()
		output.Look(ctx, s)
		if !s.Open {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
		case <-time.After(placesEvery):
		}
	}
	if err := output.Finish(ctx); err != nil {
		return err
	}
	for _, m := range output.Missing() {
		errs = append(errs, fmt.Errorf("output is left out: %s", m))
	}
	return errors.Join(errs...)
}
