package rules

import "errors"

// Errors of requests. [Call.Answer] and others wrap them.
var (
	// ErrWaiting means that there is no answer yet.
	ErrWaiting = errors.New("the request waits")
	// ErrEnded means that the run has ended, and the queue takes no requests.
	ErrEnded = errors.New("the run has ended")
	// ErrForgotten means that the request was answered before, and its answer forgotten.
	ErrForgotten = errors.New("the request is too old")
	// ErrWithdrawn means that the client has withdrawn the request. It may ask again.
	ErrWithdrawn = errors.New("the request was cancelled")
	// ErrTooMany means that more requests wait than the queue can hold.
	ErrTooMany = errors.New("too many requests wait")
)

// Call is a request whose answer may come later. A request that is sent again has the same
// Call.
type Call[A any] struct {
	ready  bool
	answer A
	err    error
}

// Ready reports whether there is an answer. Any method that changes the [Queue] may give
// one, [Queue.Actions] included.
func (c *Call[A]) Ready() bool { return c.ready }

// Answer returns the answer, or an error if it has none.
func (c *Call[A]) Answer() (A, error) {
	if !c.ready {
		return c.answer, ErrWaiting
	}
	return c.answer, c.err
}

func (c *Call[A]) give(answer A) {
	c.ready, c.answer = true, answer
}

func (c *Call[A]) refuse(err error) {
	c.ready, c.err = true, err
}

func refused[A any](err error) *Call[A] { return &Call[A]{ready: true, err: err} }
