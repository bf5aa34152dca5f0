package sweep_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// TestScripts runs the scripts in testdata, which list a sweep's events and its actions. `go test
// -run Scripts -rewrite` rewrites the actions.
//
// A script consists of the directives
//
//	sweep TRIALS AT-MOST [max-failures=N]
//	events
//	status
//	continue     in the next execution of the workflow
//	again        like rerun --failed, after the end
//
// and events consists of the lines
//
//	wait | begin | skip
//	ended TRIAL succeeded|failed|cancelled|lost
//	stop PATTERN
//	retry
//	cancel
//	after DURATION
func TestScripts(t *testing.T) {
	scripts.Run(t, func() map[string]scripts.Directive {
		s := &script{now: time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)}
		return map[string]scripts.Directive{
			"sweep": func(t *testing.T, d *datadriven.TestData) string {
				s.rules.AtMost, _ = strconv.Atoi(d.CmdArgs[1].Key)
				if d.HasArg("max-failures") {
					n := 0
					d.ScanArgs(t, "max-failures", &n)
					s.rules.MaxFailures = &n
				}
				n, _ := strconv.Atoi(d.CmdArgs[0].Key)
				s.machine = sweep.New(n, s.rules)
				return ""
			},
			"events": func(t *testing.T, d *datadriven.TestData) string { return scripts.Events(t, d, s.step) },
			"status": func(*testing.T, *datadriven.TestData) string { return s.status() },
			"continue": func(t *testing.T, _ *datadriven.TestData) string {
				return s.resume(t, s.machine.Snapshot())
			},
			"again": func(t *testing.T, _ *datadriven.TestData) string {
				snapshot, n, err := sweep.Again(s.machine.Snapshot().States)
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprintf("%d trials\n", n) + s.resume(t, snapshot)
			},
		}
	})
}

type script struct {
	machine *sweep.Machine
	rules   sweep.Rules
	now     time.Time
}

func (s *script) resume(t *testing.T, from sweep.Snapshot) string {
	m, err := sweep.Resume(from, s.rules)
	if err != nil {
		t.Fatal(err)
	}
	s.machine = m
	return from.States + "\n"
}

func (s *script) step(line string) (string, error) {
	f := append(strings.Fields(line), "", "")
	var e sweep.Event
	switch f[0] {
	case "wait":
		e = sweep.Wait{}
	case "skip":
		e = sweep.Skip{}
	case "begin":
		e = sweep.Begin{Now: s.now}
	case "ended":
		trial, err := strconv.Atoi(f[1])
		if err != nil {
			return "", err
		}
		e = sweep.Ended{Trial: trial, State: sweep.StateNamed(f[2]), Now: s.now}
	case "stop":
		e = sweep.Stop{Match: sweep.Matching(f[1])}
	case "retry":
		e = sweep.Retry{Now: s.now}
	case "cancel":
		e = sweep.Cancel{}
	case "after":
		d, err := time.ParseDuration(f[1])
		s.now = s.now.Add(d)
		return "", err
	default:
		return "", fmt.Errorf("no event %q", f[0])
	}
	var out strings.Builder
	for _, a := range s.machine.Step(e) {
		switch a := a.(type) {
		case sweep.Start:
			fmt.Fprintf(&out, "  start %d\n", a.Trial)
		case sweep.Interrupt:
			fmt.Fprintf(&out, "  interrupt %d\n", a.Trial)
		case sweep.Finish:
			fmt.Fprintf(&out, "  finish: %s\n", s.machine.Verdict())
		}
	}
	return out.String(), nil
}

func (s *script) status() string {
	st := s.machine.Status(s.now)
	out := st.Counts()
	if st.RemainingSeconds > 0 {
		out += fmt.Sprintf("; %d s left", st.RemainingSeconds)
	}
	return out + "\n" + st.Summary() + "\n"
}
