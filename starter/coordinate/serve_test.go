package coordinate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

var patience = queues.Patience

// program is a program that coordinates by lines, and its queue.
type program struct {
	*queues.Server
	t      *testing.T
	queue  *closurequeue.Client
	opened closure.Opened // the first answer
	in     *io.PipeWriter
	out    *bufio.Reader
	// ended receives the result of Serve.
	ended chan error
	// release ends the calls of wait.
	release chan struct{}
}

func newProgram(t *testing.T, size ...int) *program {
	t.Helper()
	p := &program{t: t, ended: make(chan error, 1), release: make(chan struct{})}
	p.Server = queues.New(t, queues.Functions(p.release))
	in := closure.QueueInput{Run: queues.Run}
	if len(size) > 0 {
		p.Limit(size[0])
		in.QueueSize = size[0]
	}
	p.queue = closurequeue.NewClient(p.Server, queues.Run)
	p.queue.Opening = func(string) (closure.QueueInput, error) { return in, nil }
	p.queue.Tasks = closurequeue.NewTasks(func(context.Context) ([]string, bool, error) { return []string{"chief-0", "worker-0"}, true, nil })
	t.Cleanup(p.queue.Close)
	return p
}

// begin returns a program that has read the first line.
func begin(t *testing.T, size ...int) *program {
	t.Helper()
	p := newProgram(t, size...)
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	p.in, p.out = requests, bufio.NewReader(answers)
	ctx, cancel := context.WithCancel(patience(t))
	go func() {
		p.ended <- Serve(ctx, "iris", p.queue, in, out)
		out.Close()
		in.Close()
	}()
	t.Cleanup(func() {
		cancel()
		requests.Close()
		answers.Close()
	})
	first := p.answer()
	assert.Equal(t, EventOpen, first.Event)
	assert.Equal(t, "iris", first.Run)
	require.NoError(t, json.Unmarshal(first.Answer, &p.opened))
	return p
}

func text(t *testing.T, v any) string {
	t.Helper()
	b := must.Get(json.Marshal(v))(t)
	return string(b)
}

func (p *program) ask(line string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, line+"\n")
	require.NoError(p.t, err)
}

func (p *program) answer() Answer {
	p.t.Helper()
	line := must.Get(p.out.ReadBytes('\n'))(p.t)
	a := must.JSON[Answer](p.t, line)
	return a
}

// asks makes a request and decodes its answer.
func asks[A any](p *program, id uint64, op string, message any) (out A) {
	p.t.Helper()
	p.ask(text(p.t, Request{ID: id, Op: op, Message: json.RawMessage(text(p.t, message))}))
	a := p.answer()
	require.Nil(p.t, a.Error)
	assert.Equal(p.t, id, a.ID)
	require.NoError(p.t, json.Unmarshal(a.Answer, &out))
	return out
}

// answersIn returns the answers until the end, by the IDs of their requests.
func answersIn(t *testing.T, in io.Reader) map[uint64]Answer {
	t.Helper()
	all := map[uint64]Answer{}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		a := must.JSON[Answer](t, lines.Bytes())
		all[a.ID] = a
	}
	return all
}

func batch(number uint64, functions ...string) closure.ScheduleRequest {
	r := closure.ScheduleRequest{Client: "c", Batch: number}
	for _, f := range functions {
		c := closure.Closure{Function: f}
		if f == "same" {
			c.Args = json.RawMessage(`[1]`)
		}
		r.Closures = append(r.Closures, c)
	}
	return r
}

func TestRequests(t *testing.T) {
	p := begin(t)
	assert.Equal(t, uint64(1), asks[closure.ScheduleAnswer](p, 1, wire.OpSchedule, batch(1, "same", "fails")).First)
	assert.Equal(t, "no", asks[closure.WaitAnswer](p, 2, wire.OpJoin, closure.WaitRequest{Client: "c", Call: 1}).Raised.Message)
	assert.True(t, asks[closure.WaitAnswer](p, 3, wire.OpDone, closure.WaitRequest{Client: "c", Call: 2}).Done)
	values, at := map[uint64]string{}, p.opened.At
	for len(values) < 2 {
		news := asks[closure.Outcomes](p, 4, wire.OpOutcomes, closure.OutcomesRequest{Client: "c", After: at, Wait: 20})
		for _, o := range news.Outcomes {
			values[o.ID] = string(o.Kind) + string(o.Value)
		}
		at = news.At
	}
	assert.Equal(t, map[uint64]string{1: "1", 2: "error"}, values)
	assert.Equal(t, "1", string(asks[closure.Found](p, 5, wire.OpFind, closure.FindRequest{Closures: []uint64{1}}).Outcomes[0].Value))
	require.NoError(t, p.in.Close())
	require.NoError(t, <-p.ended)
}

// An invalid request is refused with a message, and with its ID if that can be read. Valid
// requests are not refused.
func TestRequestsThatAreRefused(t *testing.T) {
	p := begin(t)
	for line, want := range map[string]Answer{
		`{"id":1,"op":"join","timeout":3}`: {ID: 1, Error: &wire.Problem{Code: wire.CodeInvalid, Field: "timeout", Message: "unknown field; the fields are id, op, message"}},
		`{"op":1,"id":2}`:                  {ID: 2, Error: &wire.Problem{Code: wire.CodeInvalid, Field: "op", Message: "it is a number; want a string"}},
		`{"id":"x","op":"join"}`:           {Error: &wire.Problem{Code: wire.CodeInvalid, Field: "id", Message: "it is a string; want a number from 0"}},
		`{"id":3,`:                         {Error: &wire.Problem{Code: wire.CodeInvalid, Message: "the JSON ends too early"}},
		`[]`:                               {Error: &wire.Problem{Code: wire.CodeInvalid, Message: "it is an array; want an object"}},
		`{"id":4,"op":"dance"}`:            {ID: 4, Error: &wire.Problem{Code: wire.CodeNotFound, Message: `unknown operation "dance"; the operations are open, schedule, join,`}},
		`{"id":5,"op":"join","message":{"call":1}}`:        {ID: 5, Error: &wire.Problem{Code: wire.CodeInvalid, Field: "client", Message: "missing"}},
		`{"id":6,"op":"find","message":{"x":1}}`:           {ID: 6, Error: &wire.Problem{Code: wire.CodeInvalid, Field: "x", Message: "unknown field; the fields are closures, tuples"}},
		`{"id":7,"op":"find","message":{"closures":[99]}}`: {ID: 7, Error: &wire.Problem{Code: wire.CodeQueueRefused, Message: "no closure 99"}},
		`{"id":8,"op":"schedule","message":` + text(t, batch(1, "nobody has this")) + `}`: {
			ID: 8, Error: &wire.Problem{Code: wire.CodeQueueRefused, Field: "closures[0].function", Message: `no task has registered a function "nobody has this"`}},
		`{"id":9,"op":"schedule","message":{"client":"c","batch":2,"closures":[{"function":"same"},{"function":"same","options":{"task":"worker-77"}}]}}`: {
			ID: 9, Error: &wire.Problem{Code: wire.CodeQueueRefused, Field: "closures[1].options.task", Message: `the run has no task "worker-77"; it has chief-0, worker-0`}},
	} {
		p.ask(line)
		got := p.answer()
		require.NotNil(t, got.Error, line)
		assert.Equal(t, []any{want.ID, want.Error.Code, want.Error.Field}, []any{got.ID, got.Error.Code, got.Error.Field}, line)
		assert.Contains(t, got.Error.Message, want.Error.Message, line)
	}
	assert.Zero(t, p.Counts().Scheduled)
	assert.Equal(t, uint64(1), asks[closure.ScheduleAnswer](p, 10, wire.OpSchedule, batch(3, "same")).First, "and it goes on")
}

// Requests that were read before the input ended are scheduled, in order, and answered; others
// get no answer. An incomplete last line is ignored.
func TestTheInputEnds(t *testing.T) {
	p := newProgram(t)
	var in, out strings.Builder
	const all = 100
	for i := range uint64(all) {
		fmt.Fprintf(&in, `{"id":%d,"op":"schedule","message":%s}`+"\n", i+1, text(t, batch(i+1, "wait")))
	}
	in.WriteString(`{"id":101,"op":"join","message":{"client":"c","call":1}}` + "\n" + `{"id":102,"op":"join"`)
	require.NoError(t, Serve(patience(t), "iris", p.queue, strings.NewReader(in.String()), &out))
	assert.Equal(t, uint64(all), p.Counts().Scheduled)
	answers := answersIn(t, strings.NewReader(out.String()))
	for i := range uint64(all) {
		got := must.JSON[closure.ScheduleAnswer](t, answers[i+1].Answer)
		assert.Equal(t, i+1, got.First)
	}
	assert.Len(t, answers, all+1, "the event and these")
	close(p.release)
}

// If no closure reaches the queue for the patience of the server, that is an error.
func TestTheInputEndsAndTheQueueIsAway(t *testing.T) {
	p := newProgram(t)
	p.Lose(closure.UpdateSchedule, 1<<30)
	s := newServer(p.queue, io.Discard)
	s.patience = time.Millisecond
	in := strings.NewReader(`{"id":1,"op":"schedule","message":` + text(t, batch(1, "same")) + "}\n")
	require.EqualError(t, s.serve(patience(t), "iris", in), "the input ended before all closures were queued; none was accepted for 1ms")
}

// A request to schedule that waits for room does not keep others from being answered.
func TestOthersBehindAFullQueue(t *testing.T) {
	p := begin(t, 1)
	for i := range uint64(maxWaiting) {
		p.ask(fmt.Sprintf(`{"id":%d,"op":"schedule","message":%s}`, i+1, text(t, batch(i+1, "wait", "wait", "wait"))))
	}
	require.Eventually(t, func() bool { return p.Calls("wait") > 0 }, time.Minute, time.Millisecond)
	p.ask(`{"id":99,"op":"cancel","message":{"closures":[1]}}`)
	for {
		a := p.answer()
		if a.ID == 99 {
			assert.JSONEq(t, `{"cancelled":0,"told":1}`, string(a.Answer))
			break
		}
	}
	close(p.release)
	go func() { _, _ = io.Copy(io.Discard, p.out) }()
	require.NoError(t, p.in.Close())
	require.NoError(t, <-p.ended)
	assert.Equal(t, uint64(3*maxWaiting), p.Counts().Scheduled)
}

func TestALineThatIsTooLong(t *testing.T) {
	p := newProgram(t)
	err := Serve(patience(t), "iris", p.queue, strings.NewReader(strings.Repeat("x", maxLine+1)+"\n"), io.Discard)
	require.EqualError(t, err, "a line has more than 4 MiB; send fewer closures at once")
}
