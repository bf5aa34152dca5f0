package queue

// For tests from outside.
var (
	Pack   = pack
	Unpack = unpack
)
