// Package codec encrypts a run's content. Payloads and failures are encoded before they leave this
// program and decoded when they return, so that they cannot be read on the server, in its database
// or in its Web UI.
//
// It is installed on each connection ([DialOption]) and so works for everything that uses one:
// commands, host workers, workflows, and readers of histories. They handle plain payloads.
// Workflow code sees the same sizes with and without encryption.
//
// Some values stay plain because the server needs them: run IDs, names of tasks, types, queues and
// identities, search attributes (the owner, the verdict and the host names) and the reason for a
// termination.
//
// # Keys
//
// The key file contains one key per line, an ID and 32 bytes in base64:
//
//	2026-10 q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=
//	2026-11 Dh0sO0pZaHeGlaSzwtHg/w4dLDtKWWh3hpWks8LR4P8=
//
// The last key encodes; all of them decode. The file must be readable only by its user. It is
// reread when it changes, so keys can be replaced without a restart: first add the new key above
// the old ones on all hosts, then move it to the end. An old key can be removed once no history is
// encoded with it.
//
// The encoding is binary/encrypted of Temporal's samples: AES-256-GCM over the whole payload,
// prefixed with the nonce, and the key's ID in the metadata.
//
// A payload with a missing key stays encoded. Reading it returns a [spec.MissingKeyError], which
// names the key: an activity fails without retry, and a command reports the error.
package codec
