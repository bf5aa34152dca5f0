// Package pmi is the server's side of PMI-1, the protocol by which programs of the MPICH
// family learn who they are: each process asks on a descriptor that it inherits.
//
// A request is a line of words name=value, the first of them cmd=NAME, and so is an answer:
//
//	init, get_maxes, get_appnum, get_my_kvsname, get_universe_size   who am I, and where
//	put, get, getbyidx         the pairs that processes tell each other
//	barrier_in                 answered when all are there; what was put before it by
//	                           anybody is there for everybody after it
//	abort, finalize            the end
//	mcmd=spawn, publish_name, unpublish_name, lookup_name            refused
//
// A [Session] is one process. It is pure: a line comes in, an answer goes out. What was put
// since the last barrier is its value for the next one ([Session.Brings]), and what all have
// brought goes into [Session.Released]: so pairs need no server of their own, and a new
// generation of a run begins without any.
//
// [Serve] reads and writes a connection, and has the barrier called where a session wants it.
package pmi
