// Package guard checks requests to a host against its owner's policy, and logs the decisions.
//
// The policy and the signers file are reread after each change, before the next decision. They are
// trusted only if no user other than root and the host worker's can have written them; see
// [readTrusted]. While they cannot be used, nothing is started.
//
// A signature is valid for one execution of a run, and a start-task signature for one start in a
// generation. A signature is identified by the signed statement and the key rather than by its
// bytes: two signatures of the same statement with the same expiry by the same key count as one.
// For as long as a signature could be used, the state directory records the execution that has used
// it. The expiry therefore limits only the first use on a host. A run that has started on a host
// can restart its tasks later.
//
// The audit log is opened for each line, so that it can be rotated. Each line is written before the
// action that it describes.
package guard
