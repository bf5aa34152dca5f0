package queue

// For tests from outside.
var (
	Pack   = pack
	Unpack = unpack
)

// Resumption is what an execution gives to the next.
type Resumption = resumption
