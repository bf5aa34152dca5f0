// Package wire has the envelopes of the calls between a supervisor and its side. They are
// exported only because net/rpc requires it.
package wire

// Call is a request with a number under which it can be given up.
type Call[T any] struct {
	ID  uint64
	Arg T
}

// Number is the ID of a call of any kind.
func (c Call[T]) Number() uint64 { return c.ID }
