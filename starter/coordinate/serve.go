package coordinate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/clusterrun/clusterrun/activities/closurequeue"
	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// maxLine is the longest line of input: more than a batch has.
const maxLine = 16 << 20

// waiting is how many requests may be read while one that keeps the order, such as a
// schedule on a full queue, holds up those behind it.
const waiting = 1024

// Serve answers requests until the input ends, or ctx does. Then it has given up what
// was still waited for.
func Serve(ctx context.Context, run string, c *clustercoordinator.Coordinator, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{coordinator: c, out: json.NewEncoder(out), ordered: make(chan Request, waiting)}
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
			return nil
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

type server struct {
	coordinator *clustercoordinator.Coordinator
	requests    sync.WaitGroup
	ordered     chan Request

	mu  sync.Mutex
	out *json.Encoder
}

// say writes a line. Whoever does not read any more has ended, or has closed the
// input, too.
func (s *server) say(a Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Encode(a)
}

func (s *server) answer(a Answer) { _ = s.say(a) }

func (s *server) refuse(id uint64, format string, args ...any) {
	s.answer(Answer{ID: id, Error: &spec.ClosureError{Kind: ErrRefused, Message: fmt.Sprintf(format, args...)}})
}

// take takes up a request.
func (s *server) take(ctx context.Context, line []byte) {
	var r Request
	if err := json.Unmarshal(line, &r); err != nil {
		s.refuse(r.ID, "the line is no request: %s", err)
		return
	}
	switch r.Op {
	case OpSchedule, OpCall, OpJoin, OpDone:
		select {
		case s.ordered <- r:
		case <-ctx.Done():
		}
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
		select {
		case r := <-s.ordered:
			switch r.Op {
			case OpSchedule, OpCall:
				s.schedule(ctx, r)
			case OpJoin:
				s.answer(Answer{ID: r.ID, Error: errorOf(s.coordinator.Join(ctx))})
			case OpDone:
				done, err := s.coordinator.Done(ctx)
				a := Answer{ID: r.ID, Error: errorOf(err)}
				if err == nil {
					a.Done = &done
				}
				s.answer(a)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (s *server) schedule(ctx context.Context, r Request) {
	if len(r.Closures) == 0 {
		s.refuse(r.ID, "closures is missing: there is nothing to %s", r.Op)
		return
	}
	// All are looked at before the first is scheduled.
	for i, c := range r.Closures {
		if err := c.check(); err != nil {
			s.refuse(r.ID, "%s", strings.ReplaceAll(err.Error(), "closures[0]", fmt.Sprintf("closures[%d]", i)))
			return
		}
	}
	values := make([]*clustercoordinator.RemoteValue, len(r.Closures))
	for i, c := range r.Closures {
		var err error
		if values[i], err = s.coordinator.ScheduleCall(ctx, c.call()); err != nil {
			s.answer(Answer{ID: r.ID, Error: errorOf(err)})
			return
		}
	}
	s.requests.Go(func() { s.scheduled(ctx, r, values) })
}

// scheduled waits for what a request to schedule wants to know.
func (s *server) scheduled(ctx context.Context, r Request, values []*clustercoordinator.RemoteValue) {
	a := Answer{ID: r.ID}
	for _, v := range values {
		if r.Op == OpCall {
			value, err := v.JSON(ctx)
			a.Outcomes = append(a.Outcomes, outcomeOf(value, err))
			continue
		}
		id, err := v.ID(ctx)
		if err != nil {
			a = Answer{ID: r.ID, Error: errorOf(err)}
			break
		}
		a.IDs = append(a.IDs, id)
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
	a := Answer{ID: r.ID}
	for _, id := range r.IDs {
		remote, err := s.coordinator.Queue().Fetch(ctx, id)
		if err != nil {
			a = Answer{ID: r.ID, Error: errorOf(err)}
			break
		}
		a.Outcomes = append(a.Outcomes, outcomeOf(remote.Wait(ctx)))
	}
	if ctx.Err() == nil {
		s.answer(a)
	}
}

func (s *server) cancel(ctx context.Context, r Request) {
	c, err := s.coordinator.Queue().Cancel(ctx, r.IDs...)
	s.answer(Answer{ID: r.ID, Cancelled: c.Cancelled, Told: c.Told, Error: errorOf(err)})
}

// call is a call as coordinators take it.
func (c Call) call() clustercoordinator.Call {
	out := clustercoordinator.Call{Function: c.Function, Options: c.Options}
	for _, a := range c.Args {
		out.Args = append(out.Args, a)
	}
	for name, a := range c.Kwargs {
		if out.Kwargs == nil {
			out.Kwargs = map[string]any{}
		}
		out.Kwargs[name] = a
	}
	return out
}

// check refuses what the queue would refuse, together with all that goes with it.
func (c Call) check() error {
	closure := spec.Closure{Function: c.Function, Options: c.Options}
	var err error
	if closure.Args, err = json.Marshal(c.Args); err != nil {
		return err
	}
	if closure.Kwargs, err = json.Marshal(c.Kwargs); err != nil {
		return err
	}
	if len(c.Args) == 0 {
		closure.Args = nil
	}
	if len(c.Kwargs) == 0 {
		closure.Kwargs = nil
	}
	return spec.ScheduleRequest{Client: "check", Batch: 1, Closures: []spec.Closure{closure}}.Validate()
}

func outcomeOf(value json.RawMessage, err error) Outcome {
	if err == nil {
		return Outcome{Value: value}
	}
	return Outcome{Error: errorOf(err), Lost: lost(err)}
}

// lost says that the error is none that the function has told.
func lost(err error) bool {
	var e *spec.ClosureError
	if !errors.As(err, &e) {
		return true
	}
	switch e.Kind {
	case spec.ErrClosureQuarantined, spec.ErrClosureLost, spec.ErrClosureNotFound:
		return e.Traceback == ""
	case spec.ErrClosureCancelled:
		return e.Traceback == "" && e.Task == ""
	}
	return false
}

func errorOf(err error) *spec.ClosureError {
	var (
		e       *spec.ClosureError
		refused *closurequeue.RefusedError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.As(err, &refused):
		return &spec.ClosureError{Kind: ErrRefused, Message: refused.Message}
	case errors.Is(err, closurequeue.ErrRunEnded):
		return &spec.ClosureError{Kind: ErrRunEnded, Message: err.Error()}
	}
	return &spec.ClosureError{Kind: ErrCoordinator, Message: err.Error()}
}
