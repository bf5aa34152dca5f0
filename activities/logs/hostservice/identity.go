package hostservice

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
)

// identity identifies a host worker to clients, and signs its tokens.
type identity struct {
	certificate tls.Certificate
	fingerprint string
	tokenKey    []byte
}

// identityFile is the file in the state directory with the private key and the certificate.
const identityFile = "hostservice.pem"

// openIdentity reads the identity from a state directory, or creates it.
func openIdentity(stateDir string) (*identity, error) {
	path := filepath.Join(stateDir, identityFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(stateDir, 0o700); err == nil {
			b, err = newIdentity()
		}
		if err == nil {
			err = atomicfile.WriteSynced(path, b, 0o600)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("key of the host service: %w", err)
	}
	certificate, err := tls.X509KeyPair(b, b)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged (%w); remove it and a new one is created, but other hosts can then no longer read the output of earlier runs", path, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, private, nil, "clusterrun read tokens", sha256.Size)
	if err != nil {
		return nil, err
	}
	return &identity{certificate: certificate, fingerprint: fingerprint(certificate.Leaf), tokenKey: key}, nil
}

func newIdentity() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"clusterrun"},
		// Clients do not check these times, because hosts' clocks differ.
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	b := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	return append(b, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})...), nil
}

// fingerprint returns the fingerprint by which clients identify a certificate.
func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}
