package workers

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// stderr is the file of standard error, for newLogger.
const stderr = "stderr"

// newLogger returns a logger that appends to a file.
func newLogger(debug bool, file string) (*zap.Logger, error) {
	out := os.Stderr
	if file != stderr {
		var err error
		if out, err = os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return nil, fmt.Errorf("set up logging: %w", err)
		}
	}
	return loggerTo(debug, newLossy(out)), nil
}

func loggerTo(debug bool, l *lossy) *zap.Logger {
	c, level := zap.NewProductionEncoderConfig(), zap.InfoLevel
	c.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000Z07:00")
	if debug {
		level = zap.DebugLevel
	}
	const atFirst, ofTheRest = 100, 100 // equal messages in a second, and the fraction of those that follow
	core := zapcore.NewSamplerWithOptions(zapcore.NewCore(zapcore.NewConsoleEncoder(c), l, level), time.Second, atFirst, ofTheRest)
	return zap.New(core, zap.ErrorOutput(l))
}

const (
	// unwrittenMost bounds the messages that wait for their reader.
	unwrittenMost = 1000
	// lastWords is the longest time for the last messages to be written.
	lastWords = time.Second
)

// lossy is the file of a log. Its reader may have stopped reading, or its disk may hang, and no
// supervisor of processes may wait for that. So one goroutine writes, and messages for which it has
// no room are dropped and counted.
type lossy struct {
	entries chan entry
	dropped atomic.Int64
}

// entry is a message, or a caller of Sync.
type entry struct {
	text   []byte
	synced chan<- struct{}
}

func newLossy(out io.Writer) *lossy {
	l := &lossy{entries: make(chan entry, unwrittenMost)}
	go l.writeTo(out)
	return l
}

func (l *lossy) writeTo(out io.Writer) {
	for e := range l.entries {
		if e.synced != nil {
			close(e.synced)
			continue
		}
		_, _ = out.Write(e.text)
		if len(l.entries) == 0 {
			if n := l.dropped.Swap(0); n > 0 {
				fmt.Fprintf(out, "%d messages were dropped here, since nobody read them in time\n", n)
			}
		}
	}
}

// Write implements [io.Writer].
func (l *lossy) Write(text []byte) (int, error) {
	select {
	case l.entries <- entry{text: append([]byte(nil), text...)}: // the caller uses its buffer again
	default:
		l.dropped.Add(1)
	}
	return len(text), nil
}

// Sync waits until the messages before it are written, but not for ever.
func (l *lossy) Sync() error {
	synced, over := make(chan struct{}), time.After(lastWords)
	select {
	case l.entries <- entry{synced: synced}:
	case <-over:
		return nil
	}
	select {
	case <-synced:
	case <-over:
	}
	return nil
}

// sdkLogger gives our log to the Temporal SDK. The SDK's level "info" is "debug" for us.
type sdkLogger struct{ *zap.Logger }

var _ log.Logger = sdkLogger{}

func (l sdkLogger) Debug(msg string, kv ...any) {}
func (l sdkLogger) Info(msg string, kv ...any)  { l.Sugar().Debugw(msg, kv...) }
func (l sdkLogger) Warn(msg string, kv ...any)  { l.Sugar().Warnw(msg, kv...) }

// Error logs an error. The failure of an activity is a debug message, because it is not an
// error of the host worker.
func (l sdkLogger) Error(msg string, kv ...any) {
	if msg == "Activity error." {
		l.Sugar().Debugw(msg, kv...)
		return
	}
	l.Sugar().Errorw(msg, kv...)
}
