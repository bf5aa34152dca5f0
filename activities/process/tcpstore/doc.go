// Package tcpstore serves the key-value store through which the processes of a torch program
// find each other, as torchrun's agent does. The store outlives each of the processes, so any
// rank may end before the others.
//
//	connection ─► request (read from the wire) ─► store (pure) ─► replies ─► connections
//
// [Listen] serves one store. A store begins empty and is gone with its [Server]: the
// processes of the next generation get another.
//
// torch.distributed.TCPStore defines the protocol: a byte that names the request, then its
// arguments. Numbers have 8 bytes, low byte first, and texts follow their length. The
// numbering of requests depends on the version:
//
//   - From torch 2.2 on a client first sends a byte 0 and a magic number. PING came with 2.5,
//     queues with 2.7, and LIST_KEYS and BARRIER later, each after those before.
//   - Up to torch 2.0 a client does not identify itself, and 7 is WATCH_KEY.
//   - A client of torch 2.1 does not identify itself either and has no WATCH_KEY: the
//     requests after it are numbered one lower. The version is recognized by a request that
//     an older client does not make: a 7 on a connection that began with something else, an 8
//     with a value, an 11 without arguments. Its MULTI_GET and MULTI_SET are recognized only
//     after one of these.
//
// There is no authentication, as with torchrun: every client that can connect can read and
// write the store. A store for the processes of one host therefore listens only on the loopback
// interface. A store holds at most 256 MiB, including the keys that are waited for or watched;
// a value has at most 64 MiB and a key 8 KiB. A client that exceeds these limits or sends an
// invalid request is disconnected.
package tcpstore
