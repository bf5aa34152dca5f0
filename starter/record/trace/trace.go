package trace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/record"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// maxMessage bounds the message of a span's status, in bytes.
const maxMessage = 500

// New returns the trace of a run that has ended and of rounds of its barriers, as a trace of
// service. Processes that were never started have no span.
func New(of *record.Account, rounds []starter.Round, service string) *Traces {
	s := of.Status
	t := tracer{id: strings.ReplaceAll(s.ExecutionID, "-", "")}
	run := t.add("", "run "+cmp.Or(s.Name, s.RunID), "run", s.Started, s.Ended,
		text("clusterrun.run.id", s.RunID), text("clusterrun.run.execution_id", s.ExecutionID), text("clusterrun.run.verdict", string(s.Verdict)),
		text("clusterrun.run.owner", s.Owner), text("clusterrun.run.queue", s.Queue), text("clusterrun.run.command", s.Command))
	why := s.Message
	if r := s.Result; r != nil {
		why = r.Message
		run.Attributes = append(run.Attributes, number("clusterrun.run.exit_code", r.ExitCode))
	}
	run.Status = status(s.Verdict == spec.VerdictSucceeded, why)
	t.phases(run.SpanID, s.Started, of.Phases)
	if s.Result != nil {
		for _, task := range s.Result.Tasks {
			t.processes(run.SpanID, task)
		}
	}
	t.rounds(run.SpanID, rounds)
	return &Traces{[]ResourceSpans{{
		Resource:   Resource{[]Attribute{text("service.name", service)}},
		ScopeSpans: []ScopeSpans{{Scope{"clusterrun", spec.Version}, t.spans}},
	}}}
}

// tracer gathers the spans of one trace.
type tracer struct {
	id    string
	spans []Span
}

// add adds a span. what is unique in the trace.
func (t *tracer) add(parent, name, what string, start, end time.Time, attributes ...Attribute) *Span {
	sum := sha256.Sum256([]byte(t.id + " " + what))
	if end.Before(start) {
		end = start // by the clock of another host
	}
	t.spans = append(t.spans, Span{
		TraceID: t.id, SpanID: hex.EncodeToString(sum[:8]), Parent: parent, Name: name, Kind: kindInternal,
		Start: nanos(start), End: nanos(end), Attributes: attributes,
	})
	return &t.spans[len(t.spans)-1]
}

// phases adds the phases of the run, in order.
func (t *tracer) phases(run string, at time.Time, phases []record.Phase) {
	for _, p := range phases {
		end := at.Add(time.Duration(p.Seconds * float64(time.Second)))
		t.add(run, p.Name, "phase "+p.Name, at, end)
		at = end
	}
}

// processes adds the processes of a task.
func (t *tracer) processes(run string, task spec.TaskResult) {
	exits := task.Exits
	if len(exits) == 0 && task.Exit != nil {
		exits = []spec.Exit{*task.Exit}
	}
	for _, e := range exits {
		if e.Started.IsZero() {
			continue
		}
		span := t.add(run, task.Name, fmt.Sprintf("process %s %d", task.Name, e.Restart), e.Started, e.Ended,
			text("clusterrun.task.name", task.Name), text("clusterrun.task.type", task.Type), number("clusterrun.task.rank", task.Rank),
			number("clusterrun.task.restart", e.Restart), text("clusterrun.task.cause", string(e.Cause)), text("host.name", task.Host),
			number("process.pid", e.PID), number("process.exit.code", e.ExitCode))
		if e.OK() || e.Cause.ByItself() || e.Cause == spec.CauseHostLost {
			span.Status = status(e.OK(), e.Message)
		}
	}
}

// rounds adds the rounds of barriers.
func (t *tracer) rounds(run string, rounds []starter.Round) {
	for _, r := range rounds {
		t.add(run, "barrier "+r.Name, fmt.Sprintf("barrier %d %d %s", r.Generation, r.Round, r.Name), r.Opened, r.Closed,
			text("clusterrun.barrier.name", r.Name), number("clusterrun.barrier.round", r.Round), number("clusterrun.barrier.generation", r.Generation))
	}
}

// status returns the status of a run or process. A process that was stopped on request has no
// status, because it ended neither well nor badly.
func status(well bool, why string) Status {
	if well {
		return Status{Code: codeOK}
	}
	return Status{codeError, shorten.Text(strings.TrimSpace(why), maxMessage)}
}
