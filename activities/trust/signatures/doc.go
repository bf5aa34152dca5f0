// Package signatures signs runs and requests to runs with SSH keys, and verifies the
// signatures.
//
// The signatures have the format of ssh-keygen -Y, in the namespace [Namespace], and the keys
// of permitted signers are in an allowed_signers file of ssh-keygen(1). A signature covers a
// [Statement]: a kind, the ID of the run, the SHA-256 of the signed content as JSON, and the
// time at which the signature expires. A signature is therefore of no use for another run, for
// another spec, or after it expires.
//
// The JSON includes the defaults of the version that signs. If a later version has different
// defaults, its hosts reject the signature, because it belongs to another spec.
package signatures
