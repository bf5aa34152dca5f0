package agents

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workers/embedded"
)

// TokenVariable is the variable that holds the secret.
const TokenVariable = "CLUSTERRUN_TOKEN"

// minToken is the minimum length of a secret, in bytes. It makes guessing hopeless.
const minToken = 16

const howToMake = "create a secret, the same for all agents: (umask 077; head -c 32 /dev/urandom | base64 > token)"

// Secret returns the agents' secret: the token in the file or, without a file, in the variable.
// It returns [ErrNoToken] if there is neither.
func Secret(file string, getenv func(string) string) ([]byte, error) {
	from, token := "$"+TokenVariable, getenv(TokenVariable)
	if file != "" {
		from = "token_file " + file
		info, err := os.Stat(file)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			return nil, fmt.Errorf("other users can read %s and so run commands as you; run chmod 600 on it", from)
		}
		var b []byte
		if err == nil {
			b, err = os.ReadFile(file)
		}
		if err != nil {
			return nil, fmt.Errorf("token_file: %w; %s", err, howToMake)
		}
		token = string(b)
	}
	token = strings.TrimSpace(token)
	switch {
	case file == "" && token == "":
		return nil, ErrNoToken
	case len(token) < minToken:
		return nil, fmt.Errorf("the token in %s has %d bytes; it needs %d; %s", from, len(token), minToken, howToMake)
	}
	return []byte(token), nil
}

// ErrNoToken reports that there is no secret.
var ErrNoToken = errors.New("agents on several hosts need a shared secret; " + howToMake +
	`, and pass it to each of them as CLUSTERRUN_TOKEN="$(cat token)", or as --rdzv-conf token_file=PATH with a path that exists on all hosts`)

// Key returns a certificate derived from a secret, with its key, in file format. The same secret
// gives the same key.
func Key(secret []byte) ([]byte, error) {
	if len(secret) < minToken {
		return nil, fmt.Errorf("the secret has %d bytes; it needs %d", len(secret), minToken)
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, "clusterrun agents", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	private := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: embedded.KeyName}, DNSNames: []string{embedded.KeyName},
		NotBefore:   time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), // hosts' clocks may be wrong
		NotAfter:    time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:        true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, block := range []*pem.Block{{Type: "CERTIFICATE", Bytes: certificate}, {Type: "PRIVATE KEY", Bytes: key}} {
		if err := pem.Encode(&text, block); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}
