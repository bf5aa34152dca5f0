package signatures

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// The format is in PROTOCOL.sshsig of OpenSSH.
const (
	magic   = "SSHSIG"
	version = 1
	pemType = "SSH SIGNATURE"
)

// envelope is the wire format of a signature.
type envelope struct {
	Magic         [6]byte
	Version       uint32
	PublicKey     []byte
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Signature     []byte
}

// signedData is the data that the key signs.
type signedData struct {
	Magic         [6]byte
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Hash          []byte
}

var hashes = map[string]func([]byte) []byte{
	"sha256": func(b []byte) []byte { sum := sha256.Sum256(b); return sum[:] },
	"sha512": func(b []byte) []byte { sum := sha512.Sum512(b); return sum[:] },
}

func dataOf(namespace, algorithm string, hash []byte) []byte {
	d := signedData{Namespace: namespace, HashAlgorithm: algorithm, Hash: hash}
	copy(d.Magic[:], magic)
	return ssh.Marshal(d)
}

// sign signs a message, with the output of ssh-keygen -Y sign.
func sign(key ssh.Signer, namespace string, message []byte) (string, error) {
	const algorithm = "sha512"
	data := dataOf(namespace, algorithm, hashes[algorithm](message))
	var signature *ssh.Signature
	var err error
	if rsa, ok := key.(ssh.AlgorithmSigner); ok && key.PublicKey().Type() == ssh.KeyAlgoRSA {
		signature, err = rsa.SignWithAlgorithm(rand.Reader, data, ssh.KeyAlgoRSASHA512)
	} else {
		signature, err = key.Sign(rand.Reader, data)
	}
	if err != nil {
		return "", err
	}
	e := envelope{
		Version: version, PublicKey: key.PublicKey().Marshal(), Namespace: namespace,
		HashAlgorithm: algorithm, Signature: ssh.Marshal(signature),
	}
	copy(e.Magic[:], magic)
	return string(pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: ssh.Marshal(e)})), nil
}

var errNoSignature = errors.New("it is not an SSH signature")

// verify returns the key that signed a message.
func verify(text, namespace string, message []byte) (ssh.PublicKey, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != pemType || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errNoSignature
	}
	var e envelope
	if err := ssh.Unmarshal(block.Bytes, &e); err != nil || string(e.Magic[:]) != magic || e.Version != version {
		return nil, errNoSignature
	}
	if e.Namespace != namespace {
		return nil, fmt.Errorf("it is for %q, not for %s", e.Namespace, namespace)
	}
	hash := hashes[e.HashAlgorithm]
	if hash == nil {
		return nil, fmt.Errorf("its hash is %q; sign with sha512 or sha256", e.HashAlgorithm)
	}
	key, err := ssh.ParsePublicKey(e.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("its key cannot be read: %w", err)
	}
	if _, isCertificate := key.(*ssh.Certificate); isCertificate {
		return nil, errors.New("it is by a certificate; sign with the key itself")
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal(e.Signature, &signature); err != nil {
		return nil, errNoSignature
	}
	if signature.Format == ssh.KeyAlgoRSA {
		return nil, errors.New("it uses SHA-1; sign with rsa-sha2-512")
	}
	if err := key.Verify(dataOf(namespace, e.HashAlgorithm, hash(message)), &signature); err != nil {
		return nil, errMismatch
	}
	return key, nil
}

// errMismatch is returned if the key has signed something else.
var errMismatch = errors.New("it is for other content")
