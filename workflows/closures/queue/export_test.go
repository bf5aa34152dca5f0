package queue

// For tests from outside.
var (
	Pack   = pack
	Unpack = unpack
)

// Resumption is the state that an execution passes to the next.
type Resumption = resumption
