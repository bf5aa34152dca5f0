package coordinate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/strictjson"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// maxLine is the longest line of input: more than a batch has.
const maxLine = 16 << 20

// maxStanding bounds the requests, in bytes, that may be read while one that keeps the
// order, such as a schedule on a full queue, holds up those behind it.
const maxStanding = 64 << 20

// endPatience is how long, after the end of the input, nothing may get into the queue
// of what was read before.
const endPatience = time.Minute

// Serve answers requests until the input ends, or ctx does. What was to be scheduled
// gets into the queue then, if it does at all; what else was waited for is given up.
func Serve(ctx context.Context, run string, q *closurequeue.Queue, in io.Reader, out io.Writer) error {
	return newServer(q, out).serve(ctx, run, in)
}

type server struct {
	queue    *closurequeue.Queue
	patience time.Duration
	requests sync.WaitGroup
	line     *line

	mu  sync.Mutex
	out *json.Encoder
}

func newServer(q *closurequeue.Queue, out io.Writer) *server {
	q.RefusalsAreTold() // in the answer to the request
	return &server{queue: q, patience: endPatience, line: newLine(), out: json.NewEncoder(out)}
}

func (s *server) serve(ctx context.Context, run string, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.requests.Wait()
	defer cancel()
	if err := s.say(Answer{Event: EventOpen, Run: run}); err != nil {
		return err
	}
	s.requests.Go(func() { s.inOrder(ctx) })
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return s.line.allArrive(ctx, s.patience)
		} else if err != nil {
			return fmt.Errorf("read requests: %w", err)
		}
		if len(line) > 0 {
			s.take(ctx, line)
		}
	}
}

// Over tells that the run has ended, and how.
func Over(out io.Writer, message string) error {
	return json.NewEncoder(out).Encode(Answer{Event: EventOver, Message: message})
}

// readLine reads a line without its end. What follows the last end of a line is no
// request: whoever wrote it has died in the middle of it.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > maxLine:
			return nil, fmt.Errorf("a line has more than %d MiB; send fewer closures at once", maxLine>>20)
		}
	}
}

// say writes a line. Whoever does not read any more has ended, or has closed the
// input, too.
func (s *server) say(a any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Encode(a)
}

func (s *server) answer(a Answer) { _ = s.say(a) }

func (s *server) refuse(id uint64, format string, args ...any) {
	s.answer(Answer{ID: id, Error: refusal(format, args...)})
}

func refusal(format string, args ...any) *closure.Error {
	return &closure.Error{Kind: ErrRefused, Message: fmt.Sprintf(format, args...)}
}

// take takes up a request.
func (s *server) take(ctx context.Context, line []byte) {
	var r Request
	if err := strictjson.Decode(line, &r); err != nil {
		_ = s.say(problem{ID: idIn(line), Answer: Answer{Error: refusal("the line is no request: %s", err)}})
		return
	}
	switch r.Op {
	case OpSchedule, OpCall, OpJoin, OpDone:
		s.line.add(ctx, r, len(line))
	case OpFetch:
		s.requests.Go(func() { s.fetch(ctx, r) })
	case OpCancel:
		s.requests.Go(func() { s.cancel(ctx, r) })
	default:
		s.refuse(r.ID, "op is %q; want schedule, call, fetch, join, done or cancel", r.Op)
	}
}

// inOrder takes up what has to be in order.
func (s *server) inOrder(ctx context.Context) {
	for {
		r, err := s.line.next(ctx)
		if err != nil {
			return
		}
		switch r.Op {
		case OpSchedule, OpCall:
			s.schedule(ctx, r)
		case OpJoin:
			err := s.queue.Join(ctx)
			if ctx.Err() != nil {
				return // nobody waits for it any more
			}
			s.answer(Answer{ID: r.ID, Error: errorOf(err)})
		case OpDone:
			done, err := s.queue.Done(ctx)
			a := Answer{ID: r.ID, Error: errorOf(err)}
			if err == nil {
				a.Done = &done
			}
			s.answer(a)
		}
	}
}

func (s *server) schedule(ctx context.Context, r Request) {
	remotes, refused := s.give(ctx, r)
	if refused != nil {
		s.answer(Answer{ID: r.ID, Error: refused})
		s.line.arrived()
		return
	}
	s.requests.Go(func() { s.scheduled(ctx, r, remotes) })
}

// give schedules the closures of a request.
func (s *server) give(ctx context.Context, r Request) ([]*closurequeue.Remote, *closure.Error) {
	if len(r.Closures) == 0 {
		return nil, refusal("closures is missing: there is nothing to %s", r.Op)
	}
	// All are looked at before the first is scheduled.
	for i, c := range r.Closures {
		if err := s.queue.Check(ctx, c); err != nil {
			return nil, errorOf(closure.Renamed(err, func(path string) string { return fmt.Sprintf("closures[%d].%s", i, path) }))
		}
	}
	remotes := make([]*closurequeue.Remote, len(r.Closures))
	for i, c := range r.Closures {
		var err error
		if remotes[i], err = s.queue.Schedule(ctx, c); err != nil {
			return nil, errorOf(err)
		}
	}
	return remotes, nil
}

// scheduled waits for what a request to schedule wants to know.
func (s *server) scheduled(ctx context.Context, r Request, remotes []*closurequeue.Remote) {
	a := Answer{ID: r.ID}
	for _, v := range remotes {
		id, err := v.ID(ctx)
		if err != nil && a.Error == nil {
			a.Error = errorOf(err)
		}
		a.IDs = append(a.IDs, id)
	}
	if a.Error != nil {
		a.IDs = nil
	}
	if r.Op == OpSchedule {
		if ctx.Err() == nil {
			s.answer(a)
		}
		s.line.arrived()
		return
	}
	s.line.arrived()
	a = Answer{ID: r.ID}
	for _, v := range remotes {
		a.Outcomes = append(a.Outcomes, outcomeOf(v.Wait(ctx)))
	}
	if ctx.Err() == nil {
		s.answer(a)
	}
}

func (s *server) fetch(ctx context.Context, r Request) {
	if len(r.IDs) == 0 {
		s.refuse(r.ID, "ids is missing: there is nothing to fetch")
		return
	}
	remotes, err := s.queue.FetchAll(ctx, r.IDs...)
	a := Answer{ID: r.ID, Error: errorOf(err)}
	for _, remote := range remotes {
		a.Outcomes = append(a.Outcomes, outcomeOf(remote.Wait(ctx)))
	}
	if ctx.Err() == nil {
		s.answer(a)
	}
}

func (s *server) cancel(ctx context.Context, r Request) {
	c, err := s.queue.Cancel(ctx, r.IDs...)
	s.answer(Answer{ID: r.ID, Cancelled: c.Cancelled, Told: c.Told, Error: errorOf(err)})
}
