// Package guard checks requests to a host against the policy of its owner, and logs the
// decisions.
//
// The policy and the file of signers are read again after each change, before the next
// decision. They are trusted only if root and the user of the host worker are the only users
// who can have written them; see [readTrusted]. While they cannot be used, nothing is started.
//
// A signature is valid for one execution of a run, and the signature of a start-task for one
// start in a generation. It is identified by the signed statement and the key rather than by
// its bytes: two signatures of the same statement with the same expiry by the same key are one.
// The execution that used a signature is noted in the state directory for as long as the
// signature could be used. The expiry therefore limits only the first use on a host: a run that
// has begun here can start its tasks again later.
//
// The audit log is opened for each line, so that it can be rotated. Each line is written before
// the action that it describes.
package guard
