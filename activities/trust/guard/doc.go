// Package guard checks requests to a host against its owner's policy, and logs the decisions.
//
// The policy and the signers file are reread after each change, before the next decision. They are
// trusted only if no user except root and the host worker's can have written them; see
// [readTrusted]. While they cannot be used, nothing starts.
//
// A signature is valid for one execution of a run, and a start-task signature for one start in a
// generation. It is identified by the signed statement and the key rather than by its bytes. Two
// signatures of the same statement with the same expiry by the same key are one. The state
// directory records the execution that used a signature for as long as the signature could be
// used. The expiry therefore limits only the first use on a host. A run that has started on a host
// can restart its tasks later.
//
// The audit log is opened for each line, so that it can be rotated. Each line is written before
// the described action.
package guard
