package doctor

import (
	"context"
	"fmt"
	"time"
)

// Level is a finding's severity.
type Level string

// The values of [Level]. A warning is about something that some runs require, or will require.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Problem Level = "problem"
)

// Finding is a check's result.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

func ok(format string, args ...any) Finding {
	return Finding{Level: OK, Text: fmt.Sprintf(format, args...)}
}

func warning(remedy, format string, args ...any) Finding {
	return Finding{Level: Warning, Text: fmt.Sprintf(format, args...), Remedy: remedy}
}

func problem(remedy, format string, args ...any) Finding {
	return Finding{Level: Problem, Text: fmt.Sprintf(format, args...), Remedy: remedy}
}

// Unknown returns the finding for a check that could not be made.
func Unknown(why error, remedy string) Finding {
	return warning(remedy, "could not be checked: %v", why)
}

// Worst returns the highest level among findings.
func Worst(all []Finding) Level {
	worst := OK
	for _, f := range all {
		if f.Level == Problem || f.Level == Warning && worst == OK {
			worst = f.Level
		}
	}
	return worst
}

// Check is a check to make.
type Check struct {
	Name string
	Find func(context.Context) []Finding
}

// Examine makes all checks concurrently and returns their findings in the order of the checks.
// It abandons a check that does not answer in time, because it may hang in the kernel.
func Examine(ctx context.Context, bound time.Duration, checks []Check) []Finding {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	answers := make([]chan []Finding, len(checks))
	for i, c := range checks {
		answers[i] = make(chan []Finding, 1)
		go func() { answers[i] <- c.Find(ctx) }()
	}
	// Checks that respect ctx get extra time to report their progress.
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), bound+bound/4)
	defer stop()
	var all []Finding
	for i, c := range checks {
		var found []Finding
		select {
		case found = <-answers[i]:
		case <-late.Done():
			select {
			case found = <-answers[i]: // it arrived while waiting for another
			default:
			}
		}
		if found == nil {
			found = []Finding{Unknown(fmt.Errorf("no answer within %s", bound), "check whether a file system, a driver or the server is hanging: dmesg | tail")}
		}
		for _, f := range found {
			f.Check = c.Name
			all = append(all, f)
		}
	}
	return all
}
