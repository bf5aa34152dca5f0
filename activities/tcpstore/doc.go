// Package tcpstore serves the key-value store by which the processes of a torch program find
// each other, as torchrun's agent does: one that outlives each of them, so that any rank may end
// before the others.
//
//	connection ─► request (read from the wire) ─► store (pure) ─► replies ─► connections
//
// [Listen] serves one store. A store begins empty and is gone with its [Server]: the processes
// of a next generation get another.
//
// The protocol is that of torch.distributed.TCPStore: a byte that names the request, then its
// arguments, with numbers of 8 bytes, low byte first, and texts behind their length. Its requests
// are numbered in three ways:
//
//   - From torch 2.2 on a client first sends a byte 0 and a magic number. PING came with 2.5,
//     queues with 2.7, and LIST_KEYS and BARRIER later, each behind those before.
//   - Up to torch 2.0 a client says nothing of itself, and 7 is WATCH_KEY.
//   - Torch 2.1 says nothing either and has no WATCH_KEY: what follows is numbered one lower. It is
//     recognised by a request that an older client does not make: a 7 on a connection that
//     began with something else, an 8 with a value, an 11 without arguments. Its MULTI_GET and MULTI_SET
//     are recognised after one of these only.
//
// Nobody is asked who they are, as with torchrun: whoever can connect can read and write the store.
// So a store for the processes of one host listens on its loopback interface alone. It holds at
// most 256 MiB, with the keys that are waited for or watched, a value at most 64 MiB and a key
// 8 KiB; a client that wants more is disconnected, and so is one that sends what is no request.
package tcpstore
