package devserver

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"time"
)

// Run serves until the context, a signal, idleness or the lifeline stops it. These are clean stops,
// not errors.
func Run(ctx context.Context, o Options, stdout, stderr io.Writer) error {
	started := time.Now()
	if err := o.validate(); err != nil {
		return err
	}
	logger, err := newLogger(o.LogLevel, stderr)
	if err != nil {
		return err
	}
	ctx, end, err := endings(ctx, o)
	if err != nil {
		return err
	}
	defer end(nil)

	if o.UIFor != "" {
		err = runUI(ctx, o, func(r Ready) error { return announce(r, o, stdout) })
	} else {
		err = claimAndServe(ctx, o, started, logger, stdout, end)
	}
	if ctx.Err() != nil {
		fmt.Fprintf(stderr, "clusterrun-devserver: stopped: %v\n", context.Cause(ctx))
		return nil
	}
	return err
}

// claimAndServe secures the database and the ports before it starts anything.
func claimAndServe(ctx context.Context, o Options, started time.Time, logger *serverLog, stdout io.Writer, end context.CancelCauseFunc) error {
	// During the start, the server allocates much and frees little memory, on a heap that is still
	// tiny, so it would spend much of its time on garbage collection.
	gc := debug.SetGCPercent(-1)
	defer debug.SetGCPercent(gc)

	db, err := claimDatabase(o.Database)
	if err != nil {
		return err
	}
	defer db.release()
	k, err := ownKey(o.Key)
	if err != nil {
		return err
	}
	if err := checkMetrics(o.Metrics); err != nil {
		return err
	}
	ports, err := choosePorts(o)
	if err != nil {
		return err
	}
	// Do this only now, because the file may be the ready file of a server that uses this database
	// or these ports.
	if err := prepareReadyFile(o.ReadyFile); err != nil {
		return err
	}
	if err := db.prepare(ctx); err != nil {
		return err
	}
	usage := &usage{limit: o.IdleExit, onIdle: func() {
		end(fmt.Errorf("idle for %s (--idle-exit)", o.IdleExit))
	}}
	s, err := newServer(ctx, o, ports, k, db, logger, usage)
	if err != nil {
		return err
	}
	return serve(ctx, s, func() error {
		debug.SetGCPercent(gc)
		usage.watch()
		return announce(s.ready(started), o, stdout)
	})
}

// serve starts the server and stops it when the context is canceled or at the first failure. It
// removes the ready file first, so that clients do not find a server that is about to refuse them.
func serve(ctx context.Context, s *server, onReady func() error) error {
	defer s.stop()
	if err := s.start(ctx); err != nil {
		return err
	}
	defer removeReadyFile(s.opts.ReadyFile)
	if err := onReady(); err != nil {
		return err
	}
	return s.wait(ctx)
}
