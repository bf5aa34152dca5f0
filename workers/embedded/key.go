package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// KeyName is the name in the server's certificate, at any address.
const KeyName = "clusterrun"

// tls returns the configuration of a connection to the server. It reads the key each time, because
// a new server may have made another.
func (h Home) tls() (*tls.Config, error) {
	config, err := TLS(h.Key())
	if err != nil {
		return nil, fmt.Errorf("the key of the embedded server: %w", err)
	}
	return config, nil
}

// TLS returns the configuration of a connection with the certificate in file on both sides.
func TLS(file string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		return nil, err
	}
	return Mutual(pair, "h2"), nil
}

// Mutual returns the configuration of a connection with the same certificate, issued for [KeyName],
// on both sides. Neither side accepts a different certificate.
func Mutual(pair tls.Certificate, protocols ...string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(pair.Leaf)
	return &tls.Config{
		ServerName: KeyName, RootCAs: roots, Certificates: []tls.Certificate{pair},
		MinVersion: tls.VersionTLS13, NextProtos: protocols,
	}
}
