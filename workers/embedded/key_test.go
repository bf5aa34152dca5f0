package embedded

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// serveTLS writes a key to the file, and greets clients that have it.
func serveTLS(l net.Listener, file string) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{KeyName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	_ = pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(text.Bytes(), text.Bytes())
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(pair.Leaf)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = tls.Server(c, config).Handshake()
				_, _ = c.Read(make([]byte, 1)) // until the client leaves
			}()
		}
	}()
	return nil
}

// A program with the server's port and ready file, but not its key, gets nothing from a client.
func TestAStrangerIsNotTakenForTheServer(t *testing.T) {
	h := newHome(t)
	s := must.Get(h.Ensure(t.Context(), ""))(t)
	c := must.Get(h.Dial(t.Context()))(t)
	require.NoError(t, c.Close())

	stranger := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer stranger.Close()
	require.NoError(t, serveTLS(stranger, t.TempDir()+"/key.pem"))
	s.Address = stranger.Addr().String()
	writeReady(t, h, s)
	_, err := h.Dial(t.Context())
	var unknown *tls.CertificateVerificationError
	require.ErrorAs(t, err, &unknown)
}

// The server is killed between finding it and connecting to it, and the program that got its port
// is silent: that is not waited for.
func TestAStrangerThatIsSilent(t *testing.T) {
	h := newHome(t)
	s := must.Get(h.Ensure(t.Context(), ""))(t)
	stranger := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer stranger.Close()
	s.Address = stranger.Addr().String()
	writeReady(t, h, s)
	dialed := make(chan error)
	go func() {
		_, err := h.Dial(t.Context())
		dialed <- err
	}()
	c := must.Get(stranger.Accept())(t)
	defer c.Close()
	require.NoError(t, syscall.Kill(s.PID, syscall.SIGKILL))
	select {
	case err := <-dialed:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(time.Minute):
		t.Fatal("it waits for the stranger")
	}
}

// The directory may be on a disk that machines or containers share: a server of another machine,
// user or boot is not mistaken for this server.
func TestTheServerOfAnotherMachine(t *testing.T) {
	h := newHome(t)
	s := must.Get(h.Ensure(t.Context(), ""))(t)
	for where, other := range map[string]Instance{
		"on the host node-7 as":                         {PID: s.PID, Host: "node-7", Boot: "another", UID: s.UID, Container: s.Container},
		"on the host node-7 as the user":                {PID: s.PID, Host: "node-7", Boot: s.Boot, UID: s.UID + 1, Container: s.Container},
		"in another container on this machine, node-7;": {PID: s.PID, Host: "node-7", Boot: s.Boot, UID: s.UID, Container: "net:[1] pid:[2]"},
	} {
		other.Address = s.Address
		writeReady(t, h, &other)
		_, err := h.Find(t.Context())
		require.ErrorContains(t, err, "runs "+where)
		assert.ErrorContains(t, err, "--state-dir")
	}
	writeReady(t, h, s)
}

func writeReady(t *testing.T, h Home, s *Instance) {
	t.Helper()
	text := must.Get(json.Marshal(s))(t)
	require.NoError(t, os.WriteFile(h.readyFile(), text, 0o600))
}
