package coordinate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/text/strictjson"
)

// Events of an [Answer].
const (
	EventOpen = "open"
	EventOver = "over"
)

// Request is one line of input.
type Request struct {
	ID uint64 `json:"id"`
	// Op is one of [wire.Operations], and Message is its message.
	Op      string          `json:"op"`
	Message json.RawMessage `json:"message,omitempty"`
}

// Answer is one line of output: an answer, an error, or an event.
type Answer struct {
	ID    uint64 `json:"id,omitempty"`
	Event string `json:"event,omitempty"`
	// Run is the run, with [EventOpen], whose Answer is a [closure.Opened].
	Run string `json:"run,omitempty"`
	// Message describes how the run has ended, with [EventOver].
	Message string          `json:"message,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	Error   *wire.Problem   `json:"error,omitempty"`
}

const (
	// maxLine bounds a line of input, in bytes. A batch is smaller.
	maxLine = 4 << 20
	// maxWaiting bounds the requests that wait for their turn. If there are more, nothing is
	// read.
	maxWaiting = 16
	// endPatience bounds the time, after the end of the input, in which no request to schedule
	// is answered. After that it is an error.
	endPatience = time.Minute
)

// Serve opens the queue of a run, and answers requests until the input or ctx ends.
func Serve(ctx context.Context, run string, q *closurequeue.Client, in io.Reader, out io.Writer) error {
	return newServer(q, out).serve(ctx, run, in)
}

// Over reports to the program that the run has ended, and how.
func Over(out io.Writer, message string) error {
	return json.NewEncoder(out).Encode(Answer{Event: EventOver, Message: message})
}

type server struct {
	queue    *closurequeue.Client
	patience time.Duration
	requests sync.WaitGroup
	// scheduling counts the requests to schedule that are not answered. scheduled receives an
	// element when one is answered.
	scheduling atomic.Int64
	scheduled  chan struct{}

	mu  sync.Mutex
	out *json.Encoder
}

func newServer(q *closurequeue.Client, out io.Writer) *server {
	return &server{queue: q, patience: endPatience, scheduled: make(chan struct{}, 1), out: json.NewEncoder(out)}
}

func (v *server) serve(ctx context.Context, run string, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer v.requests.Wait()
	defer cancel()
	opened, err := v.queue.Begin(ctx, closurequeue.Caller{})
	if err != nil {
		return err
	}
	answer, err := json.Marshal(opened)
	if err != nil {
		return err
	}
	if err := v.say(Answer{Event: EventOpen, Run: run, Answer: answer}); err != nil {
		return err
	}
	waiting := make(chan Request, maxWaiting)
	v.requests.Go(func() { v.inOrder(ctx, waiting) })
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	lines.Split(wholeLines)
	for lines.Scan() {
		r, err := parse(lines.Bytes())
		switch {
		case err != nil:
			_ = v.say(Answer{ID: r.ID, Error: wire.Refused(err)})
		case r.Op == wire.OpSchedule || r.Op == wire.OpJoin || r.Op == wire.OpDone:
			if r.Op == wire.OpSchedule {
				v.scheduling.Add(1)
			}
			select {
			case waiting <- r:
			case <-ctx.Done():
				return ctx.Err()
			}
		default:
			v.requests.Go(func() { v.answer(ctx, r) })
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a line has more than %d MiB; send fewer closures at once", maxLine>>20)
	} else if lines.Err() != nil {
		return fmt.Errorf("read requests: %w", lines.Err())
	}
	return v.awaitScheduled(ctx)
}

// wholeLines splits the input into lines. It drops an incomplete last line: the program has
// died while it wrote that.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	advance, token, err = bufio.ScanLines(data, false)
	if atEOF && advance == 0 {
		return len(data), nil, nil
	}
	return advance, token, err
}

// parse reads a request. With an error, the request has its ID if that could be read.
func parse(line []byte) (Request, error) {
	var r Request
	if err := strictjson.Decode(line, &r); err != nil {
		r = Request{}
		_ = json.Unmarshal(line, &struct{ ID *uint64 }{&r.ID})
		return r, err
	}
	return r, nil
}

// inOrder answers the requests that keep their order, one after the other, until ctx ends.
func (v *server) inOrder(ctx context.Context, waiting <-chan Request) {
	for {
		select {
		case r := <-waiting:
			v.answer(ctx, r)
			if r.Op != wire.OpSchedule {
				continue
			}
			v.scheduling.Add(-1)
			select {
			case v.scheduled <- struct{}{}:
			default:
			}
		case <-ctx.Done():
			return
		}
	}
}

// awaitScheduled waits until all requests to schedule are answered, for as long as some are.
func (v *server) awaitScheduled(ctx context.Context) error {
	for v.scheduling.Load() > 0 {
		patience := time.NewTimer(v.patience)
		select {
		case <-v.scheduled:
			patience.Stop()
		case <-ctx.Done():
			patience.Stop()
			return ctx.Err()
		case <-patience.C:
			return fmt.Errorf("the input ended before all closures were queued; none was accepted for %s", v.patience)
		}
	}
	return nil
}

// answer answers a request, unless ctx ends.
func (v *server) answer(ctx context.Context, r Request) {
	out, problem := v.queue.Answer(ctx, closurequeue.Caller{}, r.Op, r.Message)
	if ctx.Err() != nil {
		return
	}
	a := Answer{ID: r.ID, Error: problem}
	if problem == nil {
		var err error
		if a.Answer, err = json.Marshal(out); err != nil {
			a.Error = closurequeue.Problem(err)
		}
	}
	_ = v.say(a) // if the program no longer reads, it has ended, and so has its input
}

func (v *server) say(a Answer) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.out.Encode(a)
}
