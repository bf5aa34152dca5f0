package signatures

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// sign signs a message, and returns a signature in the format of ssh-keygen -Y sign.
func sign(key ssh.Signer, namespace string, message []byte) (string, error) {
	signature, err := sshsig.Sign(bytes.NewReader(message), key, sshsig.HashSHA512, namespace)
	if err != nil {
		return "", err
	}
	return string(sshsig.Armor(signature)), nil
}

// verify returns the key that signed a message. It refuses certificates. Package sshsig refuses RSA
// with SHA-1.
func verify(text, namespace string, message []byte) (ssh.PublicKey, error) {
	signature, err := sshsig.Unarmor([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("it is not a verifiable SSH signature: %w", err)
	}
	if signature.Namespace != namespace {
		return nil, fmt.Errorf("its namespace is %q instead of %s", signature.Namespace, namespace)
	}
	key := signature.PublicKey
	if _, isCertificate := key.(*ssh.Certificate); isCertificate {
		return nil, errors.New("it was made with a certificate; sign with the key itself")
	}
	if err := sshsig.Verify(bytes.NewReader(message), signature, key, signature.HashAlgorithm, namespace); err != nil {
		return nil, errMismatch
	}
	return key, nil
}

// errMismatch means that the key signed something else.
var errMismatch = errors.New("it signs different content")
