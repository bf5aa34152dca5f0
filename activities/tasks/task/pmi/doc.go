// Package pmi is the server side of PMI-1, the protocol that identifies processes of the MPICH
// family. Each process sends requests on a descriptor that it inherits.
//
// A request is a line of words name=value, the first of them cmd=NAME, and so is an answer:
//
//	init, get_maxes, get_appnum, get_my_kvsname, get_universe_size   who am I, and where
//	put, get, getbyidx         pairs that processes exchange
//	barrier_in                 answered when all have arrived; afterwards all can get the
//	                           pairs that any process put before
//	abort, finalize            the end
//	mcmd=spawn, publish_name, unpublish_name, lookup_name            refused
//
// A [Session] is one process. It is pure: a line comes in, an answer goes out. The pairs put since
// the last barrier are the process's value for the next one ([Session.Brings]), and the values of
// all processes go into [Session.Released]. The pairs therefore do not need a server, and each run
// generation starts without any.
//
// [Serve] reads and writes a connection, and calls the barrier when the session needs it.
package pmi
