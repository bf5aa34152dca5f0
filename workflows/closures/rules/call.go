package rules

import "errors"

// Errors of requests. [Call.Answer] and others wrap them.
var (
	// ErrWaiting: there is no answer yet.
	ErrWaiting = errors.New("the request waits")
	// ErrEnded: the run has ended, and the queue takes no requests.
	ErrEnded = errors.New("the run has ended")
	// ErrForgotten: the request was answered once, too long ago to remember how.
	ErrForgotten = errors.New("the request is too old")
	// ErrWithdrawn: the client has said that it does not wait any more. One that does,
	// after all, can ask again.
	ErrWithdrawn = errors.New("the request was taken back")
	// ErrTooMany: more requests wait than the queue can hold.
	ErrTooMany = errors.New("too many requests wait")
)

// Call is a request that may have to wait for its answer. The same request sent
// again has the same Call.
type Call[A any] struct {
	ready  bool
	answer A
	err    error
}

// Ready reports whether there is an answer. Any method of the [Queue] that changes
// it may give one, [Queue.Actions] included.
func (c *Call[A]) Ready() bool { return c.ready }

// Answer returns the answer, or why there is none.
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
