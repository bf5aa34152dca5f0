package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Gate is a frontend like those in production: it requires certificates from its own authority,
// limits the age of connections, and authorizes each request.
type Gate struct {
	t       testing.TB
	Address string
	// CA is the authority's file.
	CA string

	authority tls.Certificate
	mu        sync.Mutex
	allow     func(Request) error
	asked     map[string]int // requests by certificate name
}

// StartGate starts a gate in front of a server that accepts all clients.
func StartGate(t testing.TB, s *Server) *Gate {
	t.Helper()
	g := &Gate{t: t, CA: filepath.Join(t.TempDir(), "ca.pem"), asked: map[string]int{}}
	g.authority = g.certify("authority", time.Hour)
	require.NoError(t, os.WriteFile(g.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.authority.Certificate[0]}), 0o600))
	roots := x509.NewCertPool()
	roots.AddCert(g.authority.Leaf)
	behind, err := grpc.NewClient(s.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{g.certify("frontend.test", time.Hour)}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert,
		})),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.ForceServerCodec(raw{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { return g.pass(behind, stream) }),
	)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g.Address = l.Addr().String()
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		behind.Close()
	})
	return g
}

// Request is a client's request. The client is identified by its certificate.
type Request struct {
	Method, Client string
	Metadata       metadata.MD
	Body           []byte
}

// Allow makes the gate call f for each request.
func (g *Gate) Allow(f func(Request) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.allow = f
}

// Refused is an authorizer's answer.
var Refused = status.Error(codes.PermissionDenied, "Request unauthorized.")

// pass answers one request, like the server behind it if the request is allowed.
func (g *Gate) pass(behind *grpc.ClientConn, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	md, _ := metadata.FromIncomingContext(stream.Context())
	from, _ := peer.FromContext(stream.Context())
	leaf := from.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0]
	client := leaf.Subject.CommonName
	g.mu.Lock()
	g.asked[client]++
	allow := g.allow
	g.mu.Unlock()
	if time.Now().After(leaf.NotAfter) {
		return status.Error(codes.Unauthenticated, "the certificate "+client+" has expired")
	}
	var request, reply []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if allow != nil {
		if err := allow(Request{path.Base(method), client, md, request}); err != nil {
			return err
		}
	}
	if err := behind.Invoke(metadata.NewOutgoingContext(stream.Context(), md), method, &request, &reply, grpc.ForceCodec(raw{})); err != nil {
		return err
	}
	return stream.SendMsg(&reply)
}

// raw leaves messages unchanged.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(b []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), b...)
	return nil
}
func (raw) Name() string { return "proto" }

// certify makes a certificate; the first is the authority's.
func (g *Gate) certify(name string, lasts time.Duration) tls.Certificate {
	g.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(g.t, err)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(lasts), IsCA: g.authority.Leaf == nil, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, any(key)
	if g.authority.Leaf != nil {
		parent, signer = g.authority.Leaf, g.authority.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(g.t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(g.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Client is a certificate and its key, in files.
type Client struct {
	gate      *Gate
	Cert, Key string
}

// Client creates files for a client. Renew writes their content.
func (g *Gate) Client(name string, lasts time.Duration) *Client {
	dir := g.t.TempDir()
	c := &Client{gate: g, Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	c.Renew(name, lasts)
	return c
}

// Renew writes a new certificate and key to the files.
func (c *Client) Renew(name string, lasts time.Duration) {
	c.gate.t.Helper()
	pair := c.gate.certify(name, lasts)
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(c.gate.t, err)
	for file, block := range map[string]*pem.Block{
		c.Cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, c.Key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		require.NoError(c.gate.t, os.WriteFile(file+".new", pem.EncodeToMemory(block), 0o600))
		require.NoError(c.gate.t, os.Rename(file+".new", file))
	}
}

// Env returns the variables that make a program use the gate with the certificate.
func (c *Client) Env() []string {
	return []string{
		"TEMPORAL_ADDRESS=" + c.gate.Address, "TEMPORAL_TLS_SERVER_NAME=frontend.test", "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + c.gate.CA,
		"TEMPORAL_TLS_CLIENT_CERT_PATH=" + c.Cert, "TEMPORAL_TLS_CLIENT_KEY_PATH=" + c.Key,
	}
}
