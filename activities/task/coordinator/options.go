package coordinator

import (
	"errors"
	"io"
	"log/slog"
	"slices"
)

// Option is something [New] is told.
type Option func(*Coordinator)

// CleanStop names the errors that stop the coordinator without being errors of
// the program, as [errors.Is] finds them. They replace the default, [io.EOF]; with
// none at all every error is one.
func CleanStop(errs ...error) Option {
	errs = slices.Clone(errs)
	return CleanStopFunc(func(err error) bool {
		return slices.ContainsFunc(errs, func(clean error) bool { return errors.Is(err, clean) })
	})
}

// CleanStopFunc is [CleanStop] for kinds of errors that only code can tell. The
// function may be called from several goroutines at once.
func CleanStopFunc(clean func(error) bool) Option {
	return func(c *Coordinator) { c.clean = clean }
}

// Logger sets where the coordinator logs which error stopped it, and what nobody
// else is told. By default that is [slog.Default].
func Logger(log *slog.Logger) Option {
	return func(c *Coordinator) { c.logger = log }
}

func endOfInput(err error) bool { return errors.Is(err, io.EOF) }
