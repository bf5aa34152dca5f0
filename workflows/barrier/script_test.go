package barrier_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/barrier"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// TestScripts runs the scripts in testdata, which list a round's events and its answers. `go test
// -run Scripts -rewrite` rewrites the answers.
//
// A script consists of the directives
//
//	round PARTICIPANT…     opens a round
//	events                 applies events, one per line
//	status                 shows the present and the missing tasks
//	result                 shows the result of the workflow
//
// and events consists of the lines
//
//	arrive TASK KEY [timeout=DURATION] [value=TEXT] [size=BYTES] [for=TASK,TASK…] [host=NAME]
//	withdraw TASK KEY
//	after DURATION         time passes, without an event
//	passed                 the deadline's timer fires
//	ended TASK [HOW]
//	run-ended HOW
//	cancel
func TestScripts(t *testing.T) {
	scripts.Run(t, func() map[string]scripts.Directive {
		var s *script
		return map[string]scripts.Directive{
			"round": func(_ *testing.T, d *datadriven.TestData) string {
				s = newScript(d)
				return ""
			},
			"events": func(t *testing.T, d *datadriven.TestData) string { return scripts.Events(t, d, s.step) },
			"status": func(*testing.T, *datadriven.TestData) string { return s.status() },
			"result": func(*testing.T, *datadriven.TestData) string { return s.result() },
		}
	})
}

var scriptStart = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

type script struct {
	round        *barrier.Round
	participants []string
	now          time.Time
}

func newScript(d *datadriven.TestData) *script {
	s := &script{now: scriptStart}
	for _, a := range d.CmdArgs {
		s.participants = append(s.participants, a.Key)
	}
	s.round = barrier.New(s.participants, s.now)
	return s
}

func (s *script) step(line string) (string, error) {
	e, err := s.event(strings.Fields(line))
	if err != nil || e == nil {
		return "", err
	}
	var out strings.Builder
	for _, a := range s.round.Step(e) {
		what := string(a.State)
		if a.Refused != "" {
			what = "refused: " + string(a.Refused)
		}
		fmt.Fprintf(&out, "  %s %s at %s: %s\n", a.Task, a.Key, a.Host, what)
	}
	return out.String(), nil
}

func (s *script) event(f []string) (barrier.Event, error) {
	arg := func(i int) string {
		if i < len(f) {
			return f[i]
		}
		return ""
	}
	switch f[0] {
	case "arrive":
		e := barrier.Arrived{Host: "host-a", Task: arg(1), Key: arg(2), Now: s.now}
		meant := s.participants
		for _, o := range f[3:] {
			name, value, _ := strings.Cut(o, "=")
			switch name {
			case "timeout":
				d, err := time.ParseDuration(value)
				if err != nil {
					return nil, err
				}
				e.Timeout = d
			case "value":
				e.Value = value
			case "size":
				n, err := strconv.Atoi(value)
				if err != nil {
					return nil, err
				}
				e.Value = strings.Repeat("x", n)
			case "for":
				meant = strings.Split(value, ",")
			case "host":
				e.Host = value
			default:
				return nil, fmt.Errorf("%s is not known", o)
			}
		}
		e.Digest = spec.ParticipantsDigest(spec.NormalParticipants(meant))
		return e, nil
	case "withdraw":
		return barrier.Withdrawn{Task: arg(1), Key: arg(2), Now: s.now}, nil
	case "after":
		d, err := time.ParseDuration(arg(1))
		s.now = s.now.Add(d)
		return nil, err
	case "passed":
		return barrier.Passed{Now: s.now}, nil
	case "ended":
		return barrier.Ended{Task: arg(1), How: strings.Join(f[2:], " ")}, nil
	case "run-ended":
		return barrier.RunEnded{How: strings.Join(f[1:], " ")}, nil
	case "cancel":
		return barrier.Cancelled{}, nil
	}
	return nil, fmt.Errorf("no such event")
}

func (s *script) since(t time.Time) string { return t.Sub(scriptStart).String() }

func (s *script) status() string {
	var out strings.Builder
	st := s.round.Status()
	fmt.Fprintf(&out, "%s\n", st.State)
	if !st.Deadline.IsZero() {
		fmt.Fprintf(&out, "deadline %s\n", s.since(st.Deadline))
	}
	for _, w := range st.Waiting {
		fmt.Fprintf(&out, "waiting %s at %s since %s\n", w.Task, w.Host, s.since(w.Since))
	}
	for _, m := range st.Missing {
		fmt.Fprintf(&out, "missing %s since %s\n", m.Task, s.since(m.Since))
	}
	return out.String()
}

func (s *script) result() string {
	r := s.round.Result()
	if r == nil {
		return "open\n"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s", r.State)
	if r.Why != "" {
		fmt.Fprintf(&out, ": %s", r.Why)
	}
	out.WriteString("\n")
	if r.Message != "" {
		fmt.Fprintf(&out, "| %s\n", r.Message)
	}
	for _, t := range spec.NormalParticipants(s.participants) {
		if keys := r.Arrived[t]; len(keys) > 0 {
			fmt.Fprintf(&out, "%s: %s", t, strings.Join(keys, " "))
			if value, brought := r.Values[t]; brought {
				fmt.Fprintf(&out, ", bringing %.10s (%d)", value, len(value))
			}
			out.WriteString("\n")
		}
	}
	for _, q := range r.Refused {
		fmt.Fprintf(&out, "refused %s %s: %s (the round is for %s)\n", q.Task, q.Key, q.Why, strings.Join(r.Participants, " "))
	}
	return out.String()
}
