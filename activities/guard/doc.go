// Package guard holds what is asked of a host against the policy of its owner, and writes
// down what came of it.
//
// The policy and the file of signers are read anew whenever they have changed, before the
// next decision. They are believed only if nobody but root and the user of the host worker
// can have written them; see [readTrusted]. While they cannot be used nothing is started.
//
// A signature is good for one execution of a run, and that of a start-task for one start in a
// generation. It is known by what was signed and by which key, not by how it is written: two
// of the same statement with the same expiry by one key are one. What has used it is noted in the state directory, for as long as it would be
// taken. So its expiry bounds only the first use on a host, and a run that has begun here
// starts its tasks again after that.
//
// The audit log is opened for each line, so that it can be moved away. A line is written
// before what it tells of is done.
package guard
