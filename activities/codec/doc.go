// Package codec keeps what runs say to themselves: payloads and failures are encoded
// before they leave this program, and decoded when they come back, so that whoever reads
// the server, its database or its Web UI sees none of it.
//
// It works on every connection ([DialOption]) and so for everybody behind one: commands,
// host workers, workflows, and those who read histories. They deal in plain payloads and
// know nothing of it; workflow code therefore sees the same sizes with it and without.
//
// What cannot be encoded is plain: IDs of runs and names of tasks, types, queues and
// identities, search attributes (the owner, the verdict and the names of hosts) and the
// reason of a termination.
//
// # Keys
//
// A file has a key on each line, an ID and 32 bytes in base64:
//
//	2026-10 q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=
//	2026-11 Dh0sO0pZaHeGlaSzwtHg/w4dLDtKWWh3hpWks8LR4P8=
//
// The last one encodes; all decode. Nobody but its user may be able to read the file. It
// is read again when it has changed, so keys change without a restart: a new one is put
// above the others first, on all hosts, and then moved to the end. Once no history has
// been encoded with an old one, it can go.
//
// The encoding is that of Temporal's samples (binary/encrypted): AES-256-GCM over the
// whole payload, with the nonce before it and the ID of the key beside it.
//
// A payload whose key is missing stays as it is. What reads it then gets a
// [MissingKeyError], which names the key: an activity fails for good, a command says so.
package codec
