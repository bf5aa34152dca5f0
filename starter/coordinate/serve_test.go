package coordinate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

var patience = queues.Patience

// program is one that coordinates by lines, and the queue that it has.
type program struct {
	*queues.Server
	t     *testing.T
	queue *closurequeue.Queue
	in    *io.PipeWriter
	out   *bufio.Reader
	// ended has what serving has ended with.
	ended chan error
	// release ends the calls of wait.
	release chan struct{}
}

// begin has a program whose queue has this size, if one is given.
func begin(t *testing.T, size ...int) *program {
	t.Helper()
	p := queueOf(t, size...)
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
	assert.Equal(t, Answer{Event: EventOpen, Run: "iris"}, p.answer())
	return p
}

func queueOf(t *testing.T, size ...int) *program {
	t.Helper()
	p := &program{t: t, ended: make(chan error, 1), release: make(chan struct{})}
	p.Server = queues.New(t, queues.Functions(p.release))
	if len(size) > 0 {
		p.Limit(size[0])
	}
	in := closure.QueueInput{Run: queues.Run}
	if len(size) > 0 {
		in.QueueSize = size[0]
	}
	q, err := closurequeue.Open(patience(t), p.Server, "", in, nil)
	require.NoError(t, err)
	p.queue = q
	t.Cleanup(p.queue.Close)
	return p
}

func (p *program) ask(line string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, line+"\n")
	require.NoError(p.t, err)
}

func (p *program) answer() Answer {
	p.t.Helper()
	line, err := p.out.ReadBytes('\n')
	require.NoError(p.t, err)
	var a Answer
	require.NoError(p.t, json.Unmarshal(line, &a), string(line))
	return a
}

// answersIn are the answers until the end, by the IDs of their requests.
func answersIn(t *testing.T, in io.Reader) map[uint64]Answer {
	t.Helper()
	all := map[uint64]Answer{}
	lines := json.NewDecoder(in)
	for {
		var a Answer
		err := lines.Decode(&a)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all[a.ID] = a
	}
}

func TestRequests(t *testing.T) {
	p := begin(t)
	p.ask(`{"id":1,"op":"schedule","closures":[{"function":"same","args":[1]},{"function":"fails"}]}`)
	assert.Equal(t, Answer{ID: 1, IDs: []uint64{1, 2}}, p.answer())
	p.ask(`{"id":2,"op":"join"}`)
	assert.Equal(t, "no", p.answer().Error.Message)
	p.ask(`{"id":3,"op":"done"}`)
	done := true
	assert.Equal(t, Answer{ID: 3, Done: &done}, p.answer())
	p.ask(`{"id":4,"op":"fetch","ids":[1]}`)
	assert.Equal(t, Answer{ID: 4, Outcomes: []Outcome{{Value: json.RawMessage("1")}}}, p.answer())
	p.ask(`{"id":5,"op":"call","closures":[{"function":"same","args":[2]}]}`)
	assert.Equal(t, Answer{ID: 5, Outcomes: []Outcome{{Value: json.RawMessage("2")}}}, p.answer())
	require.NoError(t, p.in.Close())
	require.NoError(t, <-p.ended)
}

// What was read before the input ended is scheduled, and answered.
func TestTheInputEndsBehindRequests(t *testing.T) {
	p := queueOf(t)
	var in, out strings.Builder
	for i := range 100 {
		fmt.Fprintf(&in, `{"id":%d,"op":"schedule","closures":[{"function":"wait"}]}`+"\n", i+1)
	}
	in.WriteString(`{"id":101,"op":"call","closures":[{"function":"wait"}]}` + "\n")
	in.WriteString(`{"id":102,"op":"join"}` + "\n")
	require.NoError(t, Serve(patience(t), "iris", p.queue, strings.NewReader(in.String()), &out))
	assert.Equal(t, uint64(101), p.Counts().Scheduled)
	answers := answersIn(t, strings.NewReader(out.String()))
	for i := range uint64(100) {
		assert.Equal(t, []uint64{i + 1}, answers[i+1].IDs)
	}
	assert.Len(t, answers, 101, "the news and these: nobody waits for the others any more")
	close(p.release)
}

// They keep their order: what stands behind a join is scheduled after it.
func TestTheInputEndsBehindAJoin(t *testing.T) {
	p := begin(t)
	p.ask(`{"id":1,"op":"schedule","closures":[{"function":"wait"}]}`)
	p.answer()
	p.ask(`{"id":2,"op":"join"}`)
	p.ask(`{"id":3,"op":"schedule","closures":[{"function":"same","args":[3]}]}`)
	require.NoError(t, p.in.Close())
	require.Eventually(t, func() bool { return p.Updates(closure.UpdateJoin) == 1 }, time.Minute, time.Millisecond)
	assert.Equal(t, uint64(1), p.Counts().Scheduled)
	close(p.release)
	assert.Equal(t, map[uint64]Answer{2: {ID: 2}, 3: {ID: 3, IDs: []uint64{2}}}, answersIn(t, p.out))
	require.NoError(t, <-p.ended)
}

// Where nothing gets into the queue for long, that is said.
func TestTheInputEndsAndTheQueueIsAway(t *testing.T) {
	p := queueOf(t)
	p.Away(true)
	var out strings.Builder
	s := newServer(p.queue, &out)
	s.patience = time.Millisecond
	in := strings.NewReader(`{"id":1,"op":"schedule","closures":[{"function":"same","args":[1]}]}` + "\n")
	err := s.serve(patience(t), "iris", in)
	require.EqualError(t, err, "the input has ended, and 1 of the requests to schedule did not get into the queue: nothing did for 1ms")
}

// A schedule that waits for room does not keep others from being read, however many
// stand behind it.
func TestManyStandBehindAFullQueue(t *testing.T) {
	p := begin(t, 1)
	many := make([]string, 1000)
	for i := range many {
		many[i] = `{"function":"wait"}`
	}
	batch := strings.Join(many, ",")
	const full, more = 4, 1500 // the client takes two thousand itself
	for i := range full {
		p.ask(fmt.Sprintf(`{"id":%d,"op":"schedule","closures":[%s]}`, i+1, batch))
	}
	for i := range more {
		p.ask(fmt.Sprintf(`{"id":%d,"op":"schedule","closures":[{"function":"wait"}]}`, full+i+1))
	}
	require.Eventually(t, func() bool { return p.Calls("wait") > 0 }, time.Minute, time.Millisecond)
	p.ask(`{"id":9999,"op":"cancel","ids":[1]}`)
	assert.Equal(t, Answer{ID: 9999, Told: 1}, p.answer())
	close(p.release)
	require.NoError(t, p.in.Close())
	assert.Len(t, answersIn(t, p.out), full+more)
	require.NoError(t, <-p.ended)
	assert.Equal(t, uint64(full*1000+more), p.Counts().Scheduled)
}

// What stands in line is bounded in bytes: then nothing more is read.
func TestTheLineIsBounded(t *testing.T) {
	l := newLine()
	ctx := patience(t)
	l.add(ctx, Request{ID: 1, Op: OpSchedule}, maxStanding+1) // one has room in any case
	short, cancel := context.WithCancel(ctx)
	cancel()
	l.add(short, Request{ID: 2}, 1)
	assert.Len(t, l.requests, 1)
	go func() {
		_, _ = l.next(ctx)
	}()
	l.add(ctx, Request{ID: 3}, 1)
	r, err := l.next(ctx)
	require.NoError(t, err)
	assert.Equal(t, uint64(3), r.ID)
	assert.Zero(t, l.bytes)
	assert.Equal(t, 1, l.arriving)
}

// What the queue refuses is the error of its outcome, and nothing was lost. It is told
// to nobody else.
func TestARefusedCall(t *testing.T) {
	p := begin(t)
	p.ask(`{"id":1,"op":"call","closures":[{"function":"nobody has this","options":{"detached":true}},{"function":"same","args":[1],"options":{"detached":true}}]}`)
	outcomes := p.answer().Outcomes
	require.Len(t, outcomes, 2)
	assert.Equal(t, ErrRefused, outcomes[0].Error.Kind)
	assert.Contains(t, outcomes[0].Error.Message, `no task has registered a function "nobody has this"`)
	assert.False(t, outcomes[0].Lost)
	assert.Equal(t, Outcome{Value: json.RawMessage("1")}, outcomes[1])
	p.ask(`{"id":2,"op":"join"}`)
	assert.Equal(t, Answer{ID: 2}, p.answer())
}

// The answer to a request has told what was refused: the next one is not about it, also
// where it was on its way before.
func TestARefusalIsToldOnce(t *testing.T) {
	for op, refusalOf := range map[string]func(Answer) *closure.Error{
		OpCall:     func(a Answer) *closure.Error { return a.Outcomes[0].Error },
		OpSchedule: func(a Answer) *closure.Error { return a.Error },
	} {
		t.Run(op, func(t *testing.T) {
			p := begin(t)
			p.ask(fmt.Sprintf(`{"id":1,"op":%q,"closures":[{"function":"nobody has this"}]}`, op))
			refused := refusalOf(p.answer())
			require.NotNil(t, refused)
			assert.Equal(t, ErrRefused, refused.Kind)
			p.ask(`{"id":2,"op":"call","closures":[{"function":"same","args":[1]}]}`)
			assert.Equal(t, Answer{ID: 2, Outcomes: []Outcome{{Value: json.RawMessage("1")}}}, p.answer())

			p.Away(true)
			p.ask(fmt.Sprintf(`{"id":3,"op":%q,"closures":[{"function":"nobody has this"}]}`, op))
			p.ask(`{"id":4,"op":"join"}`)
			p.Away(false)
			got := map[uint64]Answer{}
			for range 2 {
				a := p.answer()
				got[a.ID] = a
			}
			assert.Equal(t, ErrRefused, refusalOf(got[3]).Kind)
			assert.Equal(t, Answer{ID: 4}, got[4])

			// An error of the function itself is still that of the next request.
			p.ask(`{"id":5,"op":"call","closures":[{"function":"fails"}]}`)
			assert.Equal(t, "no", p.answer().Outcomes[0].Error.Message)
			p.ask(`{"id":6,"op":"join"}`)
			require.NotNil(t, p.answer().Error)
		})
	}
}

// What only a task may call that the run does not have would wait for ever. Nothing of
// the request is scheduled.
func TestATaskThatTheRunDoesNotHave(t *testing.T) {
	p := queueOf(t)
	var err error
	p.queue, err = closurequeue.Open(patience(t), p.Server, "", closure.QueueInput{Run: queues.Run}, func(context.Context) ([]string, bool, error) {
		return []string{"chief-0", "worker-0"}, true, nil
	})
	require.NoError(t, err)
	defer p.queue.Close()
	in := `{"id":1,"op":"schedule","closures":[{"function":"same","args":[1]},{"function":"same","args":[1],"options":{"task":"worker-77"}}]}` + "\n"
	var out strings.Builder
	require.NoError(t, Serve(patience(t), "iris", p.queue, strings.NewReader(in), &out))
	refused := answersIn(t, strings.NewReader(out.String()))[1].Error
	assert.Equal(t, &closure.Error{Kind: ErrRefused, Message: `closures[1].options.task: the run has no task "worker-77"; it has chief-0, worker-0`}, refused)
	assert.Zero(t, p.Counts().Scheduled)
}

// The run ends, and with it what was to be called.
func TestTheRunEnds(t *testing.T) {
	p := begin(t)
	p.ask(`{"id":1,"op":"call","closures":[{"function":"wait"}]}`)
	require.Eventually(t, func() bool { return p.Calls("wait") == 1 }, time.Minute, time.Millisecond)
	p.End("run iris has ended")
	outcomes := p.answer().Outcomes
	require.Len(t, outcomes, 1)
	assert.Equal(t, closure.ErrCancelled, outcomes[0].Error.Kind)
	assert.True(t, outcomes[0].Lost)
}

// It ends before the closure is in the queue.
func TestTheRunEndsBefore(t *testing.T) {
	p := begin(t)
	p.Away(true)
	p.ask(`{"id":1,"op":"call","closures":[{"function":"same","args":[1]}]}`)
	p.End("run iris has ended")
	p.Away(false)
	outcomes := p.answer().Outcomes
	require.Len(t, outcomes, 1)
	assert.Equal(t, ErrRunEnded, outcomes[0].Error.Kind)
	assert.True(t, outcomes[0].Lost)
}
