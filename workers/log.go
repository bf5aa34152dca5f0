package workers

import (
	"fmt"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// stderr is the file of standard error, for newLogger.
const stderr = "stderr"

// newLogger returns a logger that appends to a file.
func newLogger(debug bool, file string) (*zap.Logger, error) {
	c := zap.NewProductionConfig()
	c.OutputPaths = []string{file}
	c.Encoding = "console"
	c.EncoderConfig.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000Z07:00")
	c.DisableStacktrace = true
	c.DisableCaller = true
	if debug {
		c.Level.SetLevel(zap.DebugLevel)
	}
	l, err := c.Build()
	if err != nil {
		return nil, fmt.Errorf("set up logging: %w", err)
	}
	return l, nil
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
