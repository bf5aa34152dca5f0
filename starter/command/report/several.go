package report

import (
	"context"
	"sync"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ended is the end of the run with that index.
type ended struct {
	index  int
	result *spec.RunResult
	err    error
}

// awaitSeveral waits until all runs have ended or, if any is set, one of them. It reports each
// one as it ends. Its error contains the exit code of the first run, in order, that did not
// succeed.
func awaitSeveral(ctx context.Context, a *cli.App, runs []*starter.Run, any bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan ended, len(runs))
	away := &absence{app: a, runs: map[*starter.Run]bool{}}
	for i, r := range runs {
		go func() {
			result, err := r.WaitNotify(ctx, func(err error) { away.notify(r, err) })
			away.forget(r)
			ends <- ended{i, result, err}
		}()
	}
	failures := make([]error, len(runs))
	for range runs {
		end := <-ends
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failures[end.index] = reportOne(ctx, a, runs[end.index], end.result, end.err)
		if any {
			return failures[end.index]
		}
	}
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// reportOne reports one run's end. Its error contains the exit code but no text.
func reportOne(ctx context.Context, a *cli.App, r *starter.Run, result *spec.RunResult, err error) error {
	a.Elsewhere = func(f *spec.Failure) ([]byte, error) { return errorFile(ctx, r, f) }
	result, err = ResultOf(result, err)
	if err != nil {
		a.SayError(err)
		return &cli.ExitError{Code: cli.CodeOf(err)}
	}
	var printed error
	if a.Global.JSON {
		printed = a.PrintJSONLine(struct {
			RunID string `json:"run_id"`
			*spec.RunResult
		}{r.ID, withTasks(result)})
	}
	if err := ReportEnd(a, r.ID, result); err != nil {
		return err
	}
	if printed != nil {
		a.SayError(printed)
		return &cli.ExitError{Code: exitcode.Machinery}
	}
	return nil
}

// absence reports once, for several runs, that the server does not answer.
type absence struct {
	app *cli.App

	mu   sync.Mutex
	runs map[*starter.Run]bool // runs without an answer from the server
}

// notify implements the notification of [starter.Run.WaitNotify] for a run.
func (s *absence) notify(r *starter.Run, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch before := len(s.runs); {
	case starter.IsError[*starter.StuckError](err), err == nil && !s.runs[r]:
		s.app.SayUnreachable(err)
	case err != nil:
		if s.runs[r] = true; before == 0 {
			s.app.SayUnreachable(err)
		}
	default:
		if delete(s.runs, r); len(s.runs) == 0 {
			s.app.SayUnreachable(nil)
		}
	}
}

// forget records that a run has ended.
func (s *absence) forget(r *starter.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, r)
}
