// Package codec encrypts a run's content. Payloads and failures are encoded before they leave this
// program and decoded when they return, so that they cannot be read on the server, in its database
// or in its Web UI.
//
// The codec is installed on each connection ([Keys.DialOption]), and thus works for everything that
// uses one: commands, host workers, workflows, and readers of histories. All of these handle plain
// payloads. Workflow code sees the same sizes with and without encryption.
//
// Some values are not encrypted because the server needs them: run IDs, names of tasks, types,
// queues and identities, search attributes (the owner, the verdict and the host names), and the
// reason for a termination.
//
// # Keys
//
// The key file contains one key per line, an ID and 32 bytes in base64:
//
//	2026-10 q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=
//	2026-11 Dh0sO0pZaHeGlaSzwtHg/w4dLDtKWWh3hpWks8LR4P8=
//
// The last key is used to encode, and all keys are used to decode. Only the file's owner may be
// able to read it. The file is reread when it changes, so keys can be replaced without a restart.
// First add the new key above the old ones on all hosts, and then move it to the end. An old key
// can be removed once no history is encoded with it.
//
// The encoding is that of Temporal's samples, binary/encrypted. It applies AES-256-GCM to the whole
// payload and prefixes the result with the nonce. The key's ID is in the metadata.
//
// A payload whose key is missing remains encoded. Reading it returns a [spec.MissingKeyError],
// which names the key. With this error, an activity fails and is not retried, and a command reports
// the error.
package codec
