package queues

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
)

// Function is a function that tasks serve. Its error may be a [closure.Error] with a kind.
type Function func(ctx context.Context, args []any, kwargs map[string]any) (any, error)

// Slots is the number of closures that are called at the same time.
const Slots = 8

// held is a closure that was given out.
type held struct {
	cancel  context.CancelFunc
	outcome *closure.Outcome
}

// lease is an open lease.
type lease struct {
	number int
	event  int64
	ids    []uint64
}

// built is a per-worker resource.
type built struct {
	value any
	err   error
}

func (s *Server) serve() {
	if s.machine != nil {
		s.machine.Serving(closure.ServingMessage{Host: "host-a", Queue: "host-a", Seq: int64(len(s.functions)), Serving: []closure.ServingTask{
			{Task: "worker-0", Process: "p", Slots: Slots, Functions: slices.Sorted(maps.Keys(s.functions))},
		}})
	}
}

// pump carries out the actions of the machine, and applies their results to it.
func (s *Server) pump() {
	for {
		for _, a := range s.machine.Actions() {
			switch a := a.(type) {
			case rules.Dispatch:
				s.drop(a.Released)
				l := &lease{number: a.Number, event: s.last().leased(a.Lease)}
				for _, c := range a.Closures {
					l.ids = append(l.ids, c.ID)
					s.begin(c, a.Resources)
				}
				s.leases = append(s.leases, l)
			case rules.CancelOn:
				for _, id := range a.Closures {
					if h := s.held[id]; h != nil {
						h.cancel()
					}
				}
			case rules.ReleaseOn:
				s.drop(a.Released)
				s.machine.ReleaseEnded(a.Release, true)
			case rules.Decide:
				s.last().decided(a.DecidedOutcomes)
			}
		}
		if !s.returnLeases() {
			break
		}
	}
	s.wake()
}

// returnLeases ends the leases of which a closure has ended, and reports whether it ended any.
func (s *Server) returnLeases() (some bool) {
	for _, l := range slices.Clone(s.leases) {
		var r closure.LeaseResult
		for _, id := range l.ids {
			if h := s.held[id]; h != nil && h.outcome != nil {
				r.Outcomes = append(r.Outcomes, *h.outcome)
				delete(s.held, id)
			} else {
				r.Rest = append(r.Rest, id)
			}
		}
		if len(r.Outcomes) == 0 {
			continue
		}
		some = true
		s.leases = slices.DeleteFunc(s.leases, func(o *lease) bool { return o == l })
		s.last().returned(l.event, r)
		s.machine.LeaseEnded(l.number, r)
	}
	return some
}

// begin calls a closure, unless it is being called.
func (s *Server) begin(c closure.Closure, resources []closure.Resource) {
	if s.held[c.ID] != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &held{cancel: cancel}
	s.held[c.ID] = h
	f := s.functions[c.Function]
	s.calls[c.Function]++
	args, kwargs, input := s.arguments(c, resources)
	go func() {
		o := closure.Outcome{ID: c.ID, Task: "worker-0", Started: true}
		var value any
		err := input
		switch {
		case err != nil:
		case f == nil:
			err = &closure.Error{Kind: closure.ErrUnknownFunction, Message: "no function " + c.Function}
		default:
			value, err = f(ctx, args, kwargs)
		}
		var said *closure.Error
		switch {
		case err == nil:
			b, err := json.Marshal(value)
			if err != nil {
				panic(err)
			}
			o.Value = b
		case errors.As(err, &said):
			named := *said // as a host does
			named.Closure, named.Task = c.ID, o.Task
			o.Kind, o.Error = closure.OutcomeError, &named
			if said.Kind == closure.ErrInput {
				o.Kind = closure.OutcomeInput
			}
		case ctx.Err() != nil:
			o.Kind = closure.OutcomeCancelled
			o.Error = &closure.Error{Kind: closure.ErrCancelled, Message: closure.TextCancelled, Closure: c.ID}
		default:
			o.Kind, o.Error = closure.OutcomeError, &closure.Error{Message: err.Error()}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		h.outcome = &o
		s.pump()
	}()
}

// arguments returns the arguments of a closure, with resources replaced by the values built for
// them.
func (s *Server) arguments(c closure.Closure, resources []closure.Resource) (args []any, kwargs map[string]any, err error) {
	if len(c.Args) > 0 {
		if err := json.Unmarshal(c.Args, &args); err != nil {
			return nil, nil, err
		}
	}
	if len(c.Kwargs) > 0 {
		if err := json.Unmarshal(c.Kwargs, &kwargs); err != nil {
			return nil, nil, err
		}
	}
	fill := func(v any) any {
		if m, ok := v.(map[string]any); ok && len(m) == 1 && m[closure.ResourceKey] != nil {
			b := s.build(uint64(m[closure.ResourceKey].(float64)), resources)
			if b.err != nil {
				err = &closure.Error{Kind: closure.ErrInput, Message: fmt.Sprintf(
					"Input has an error, the original exception is %v, error message is %v.", b.err, b.err)}
			}
			return b.value
		}
		return v
	}
	for i := range args {
		args[i] = fill(args[i])
	}
	for k := range kwargs {
		kwargs[k] = fill(kwargs[k])
	}
	return args, kwargs, err
}

// drop drops the values that were built for released resources.
func (s *Server) drop(released [][2]uint64) {
	for _, r := range released {
		maps.DeleteFunc(s.built, func(id uint64, _ *built) bool { return r[0] <= id && id <= r[1] })
	}
}

func (s *Server) build(id uint64, resources []closure.Resource) *built {
	b := s.built[id]
	for _, r := range resources {
		if r.ID != id || b != nil {
			continue
		}
		b = &built{err: fmt.Errorf("no function %s", r.Function)}
		var args []any
		if len(r.Args) > 0 {
			if err := json.Unmarshal(r.Args, &args); err != nil {
				panic(err)
			}
		}
		if f := s.functions[r.Function]; f != nil {
			b.value, b.err = f(context.Background(), args, nil)
		}
		s.calls[r.Function]++
		s.built[id] = b
	}
	return b
}
