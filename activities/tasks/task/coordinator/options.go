package coordinator

import (
	"errors"
	"io"
	"log/slog"
	"slices"
)

// Option configures a coordinator in [New].
type Option func(*Coordinator)

// CleanStop names the errors that stop the coordinator without being errors of the program,
// compared by [errors.Is]. They replace the default, [io.EOF]; without any, every error is an
// error of the program.
func CleanStop(errs ...error) Option {
	errs = slices.Clone(errs)
	return CleanStopFunc(func(err error) bool {
		return slices.ContainsFunc(errs, func(clean error) bool { return errors.Is(err, clean) })
	})
}

// CleanStopFunc is like [CleanStop], but decides with a function, which may be called
// concurrently.
func CleanStopFunc(clean func(error) bool) Option {
	return func(c *Coordinator) { c.clean = clean }
}

// Logger sets the logger for the error that stopped the coordinator, and for errors that are
// reported nowhere else. Default: [slog.Default].
func Logger(log *slog.Logger) Option {
	return func(c *Coordinator) { c.logger = log }
}

func endOfInput(err error) bool { return errors.Is(err, io.EOF) }
