// Package signatures signs runs and requests to runs with SSH keys, and verifies the signatures.
//
// The signatures have the format of ssh-keygen -Y, in the namespace [Namespace], and the keys of
// permitted signers are in ssh-keygen(1)'s allowed_signers file. A signature covers a [Statement]:
// a kind, the run's ID, the SHA-256 of the signed content as JSON, and the signature's expiry. A
// signature is therefore useless for another run, for another spec, or after it expires.
//
// The JSON includes the defaults of the version that signs. If another version has different
// defaults, its hosts reject the signature, because for them it belongs to a different spec.
package signatures
