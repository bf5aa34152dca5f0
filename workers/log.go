package workers

import (
	"fmt"
	"os"
	"time"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/clusterrun/clusterrun/activities/process/supervise"
)

// stderr means standard error, for newLogger.
const stderr = "stderr"

// newLogger returns a logger that appends to a file, and a function that closes the file.
func newLogger(debug bool, file string) (log *zap.Logger, end func(), err error) {
	out := os.Stderr
	if file != stderr {
		if out, err = os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return nil, nil, fmt.Errorf("set up logging: %w", err)
		}
	}
	l := supervise.NewLogFile(out)
	return loggerTo(debug, l), l.End, nil
}

func loggerTo(debug bool, l *supervise.LogFile) *zap.Logger {
	c, level := zap.NewProductionEncoderConfig(), zap.InfoLevel
	c.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000Z07:00")
	if debug {
		level = zap.DebugLevel
	}
	const atFirst, ofTheRest = 100, 100 // equal messages in a second, and the fraction of the rest
	core := zapcore.NewSamplerWithOptions(zapcore.NewCore(zapcore.NewConsoleEncoder(c), l, level), time.Second, atFirst, ofTheRest)
	return zap.New(core, zap.ErrorOutput(l))
}

// sdkLogger passes our log to the Temporal SDK. The SDK's level "info" is our "debug".
type sdkLogger struct{ *zap.Logger }

var _ log.Logger = sdkLogger{}

func (l sdkLogger) Debug(msg string, kv ...any) {}
func (l sdkLogger) Info(msg string, kv ...any)  { l.Sugar().Debugw(msg, kv...) }
func (l sdkLogger) Warn(msg string, kv ...any)  { l.Sugar().Warnw(msg, kv...) }

// Error logs an error. It logs an activity's failure as a debug message, because it is not the host
// worker's error.
func (l sdkLogger) Error(msg string, kv ...any) {
	if msg == "Activity error." {
		l.Sugar().Debugw(msg, kv...)
		return
	}
	l.Sugar().Errorw(msg, kv...)
}
