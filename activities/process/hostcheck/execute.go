package hostcheck

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/diskspace"
)

const (
	// maxReason limits a reason, in bytes, so that a queue's 2,000 hosts fit in a payload.
	maxReason = 200
	// maxSaid limits how much of a command's output is kept.
	maxSaid = 2048
)

// execute executes a check. The error explains a failure.
func (k *Checker) execute(ctx context.Context, c Check) error {
	if c.Command != "" {
		return k.command(ctx, "sh", "-c", c.Command)
	}
	switch c.Name {
	case "disk":
		return disk(k.Around.Dirs, c.limit())
	case "shm":
		return disk([]string{diskspace.ShmDir}, c.limit())
	case "clock":
		return clock(ctx, k.Around.Clock, c.limit())
	}
	return fmt.Errorf("this version does not have a check with that name; upgrade the host worker")
}

// outputError is a command's error, with the end of its output on one line.
type outputError struct{ how, said string }

func (e *outputError) Error() string {
	if e.said == "" {
		return e.how
	}
	return e.how + ": " + e.said
}

// command executes a command in the tasks' environment.
func (k *Checker) command(ctx context.Context, args ...string) error {
	k.swept.Do(func() { sweep(k.Instance) })
	said, code, err := output(ctx, k.Instance, args)
	switch {
	case err != nil:
		return err
	case code == 0:
		return nil
	}
	failed := &outputError{how: fmt.Sprintf("exit code %d", code), said: lastOf(oneLine(string(said)))}
	if s := unix.SignalName(unix.Signal(code - 128)); code > 128 && s != "" {
		failed.how += " (" + s + ")"
	}
	return failed
}

// lastOf returns the end of text if it is long.
func lastOf(text string) string {
	const most = maxReason - 40
	if len(text) <= most {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-most:], "")
}

// oneLine returns program output on one line, without control characters.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Join(strings.Fields(text), " ")
}
