// Package signatures signs runs, and requests to runs, with SSH keys, and verifies that.
//
// The signatures are those of ssh-keygen -Y in the namespace [Namespace], and the keys of
// those who may sign are in an allowed_signers file of ssh-keygen(1). What is signed is a
// [Statement]: a kind, the ID of the run, the SHA-256 of the JSON of what was signed, and
// when that expires. So a signature is of no use for another run, for another spec, or
// later.
//
// The JSON has the defaults of the version that has signed. Where a later version knows of
// another default, its hosts refuse the signature as one of another spec.
package signatures
