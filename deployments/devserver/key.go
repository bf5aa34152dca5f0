package devserver

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"go.temporal.io/server/common/config"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// keyName is the name in the certificate. Addresses are unsuitable, because they change and are
	// all loopback.
	keyName = "clusterrun"
	// keyLasts is a certificate's lifetime; no server runs longer. At the age of keyRotates a
	// certificate is replaced when a server starts.
	keyLasts, keyRotates = 10 * 365 * 24 * time.Hour, 30 * 24 * time.Hour
)

// key is the certificate that both sides of each connection present. Only the user can read its
// file. With the zero value, the server accepts every client.
type key struct {
	file string
	pair tls.Certificate
}

// ownKey reads a server's key from a file. If the file is missing or old, it creates a new key.
func ownKey(file string) (key, error) {
	if file == "" {
		return key{}, nil
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm()&0o077 == 0 && time.Since(info.ModTime()) > keyRotates {
		if err := makeKey(file); err != nil {
			return key{}, fmt.Errorf("--key: %w", err)
		}
	}
	return openKey(file)
}

// openKey reads a key from a file. It does not create one, because a running server would not
// accept a client with a new key.
func openKey(file string) (key, error) {
	if file == "" {
		return key{}, nil
	}
	info, err := os.Stat(file)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("%s can be read by others, who could run commands as you: run chmod 600 on it, or remove it to create a new one", file)
	}
	if err != nil {
		return key{}, fmt.Errorf("--key: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		return key{}, fmt.Errorf("--key: %s: %w; remove it to create a new one", file, err)
	}
	return key{file, pair}, nil
}

// makeKey atomically writes a self-signed certificate and its key to the file, because clients read
// it at each connection.
func makeKey(file string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: keyName},
		DNSNames: []string{keyName, "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(keyLasts), // allows for clocks that are corrected
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		// The certificate is not a CA, because SDKs with a core in Rust do not accept a CA as a
		// server's certificate.
		BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, block := range []*pem.Block{{Type: "CERTIFICATE", Bytes: certificate}, {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := pem.Encode(&text, block); err != nil {
			return err
		}
	}
	return replaceFile(file, text.Bytes())
}

func (k key) none() bool { return k.file == "" }

// server returns the TLS settings for the server's ports, including what they require of clients.
func (k key) server() config.RootTLS {
	if k.none() {
		return config.RootTLS{}
	}
	client := config.ClientTLS{ServerName: keyName, RootCAFiles: []string{k.file}}
	group := config.GroupTLS{
		Server: config.ServerTLS{CertFile: k.file, KeyFile: k.file, ClientCAFiles: []string{k.file}, RequireClientAuth: true},
		Client: client,
	}
	return config.RootTLS{
		Frontend: group, Internode: group,
		SystemWorker: config.WorkerTLS{CertFile: k.file, KeyFile: k.file, Client: client},
	}
}

// credentials returns our own client's credentials.
func (k key) credentials() credentials.TransportCredentials {
	if k.none() {
		return insecure.NewCredentials()
	}
	roots := x509.NewCertPool()
	roots.AddCert(k.pair.Leaf)
	return credentials.NewTLS(&tls.Config{
		ServerName: keyName, RootCAs: roots, Certificates: []tls.Certificate{k.pair}, MinVersion: tls.VersionTLS13,
	})
}

// token returns the token that the Web UI requires, or "" if there is no key. It depends only on
// the key, so that bookmarks and cookies remain valid when the server restarts.
func (k key) token() string {
	if k.none() {
		return ""
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k.pair.PrivateKey)
	if err != nil {
		panic(err) // the key was just read
	}
	sum := sha256.Sum256(append([]byte("clusterrun web ui "), secret...))
	return hex.EncodeToString(sum[:16])
}
