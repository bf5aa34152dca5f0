package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// KeyName is the name in the server's certificate, at any address.
const KeyName = "clusterrun"

// tls returns what a connection to the server needs. The key is read each time: a new
// server may have made another.
func (h Home) tls() (*tls.Config, error) {
	config, err := TLS(h.Key())
	if err != nil {
		return nil, fmt.Errorf("the key of the embedded server: %w", err)
	}
	return config, nil
}

// TLS returns what a connection needs on which both sides show the certificate of a file.
func TLS(file string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		return nil, err
	}
	return Mutual(pair, "h2"), nil
}

// Mutual returns what a connection needs on which both sides show the same certificate, one
// for [KeyName], and take no other.
func Mutual(pair tls.Certificate, protocols ...string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(pair.Leaf)
	return &tls.Config{
		ServerName: KeyName, RootCAs: roots, Certificates: []tls.Certificate{pair},
		MinVersion: tls.VersionTLS13, NextProtos: protocols,
	}
}
