package devserver

import (
	"io"

	"go.temporal.io/server/common/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// serverLog is the log of Temporal's libraries. At fatal level, which they use when they cannot
// continue, it also exits with code 1.
type serverLog struct {
	log.Logger
	wanted zapcore.Level
	level  zap.AtomicLevel
}

func newLogger(level string, w io.Writer) (*serverLog, error) {
	wanted, err := zapcore.ParseLevel(level)
	if err != nil || wanted > zapcore.ErrorLevel {
		return nil, usagef("--log-level %q: use debug, info, warn or error", level)
	}
	l := &serverLog{wanted: wanted, level: zap.NewAtomicLevelAt(wanted)}
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(log.DefaultZapEncoderConfig), zapcore.Lock(zapcore.AddSync(w)), l.level)
	l.Logger = log.NewZapLogger(zap.New(core))
	return l, nil
}

// hush drops errors while the server starts and stops. The services start and stop one after
// another, and report each missing peer as an error. If the level is more verbose than error, these
// errors are shown nevertheless.
func (l *serverLog) hush() {
	if l.wanted == zapcore.ErrorLevel {
		l.level.SetLevel(zapcore.FatalLevel)
	}
}

func (l *serverLog) speak() { l.level.SetLevel(l.wanted) }
