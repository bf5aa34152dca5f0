package connect

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// rotating reads the files of certificates and authorities for each connection, so that they can be
// replaced without a restart.
type rotating struct {
	credentials.TransportCredentials // of the original files

	load func() (*tls.Config, error)
	mu   sync.Mutex
	last *tls.Config
}

// newRotating returns credentials that follow changes in the files that load reads. first is the
// files' current content.
func newRotating(first *tls.Config, load func() (*tls.Config, error)) *rotating {
	return &rotating{TransportCredentials: credentials.NewTLS(first), load: load, last: first}
}

// ClientHandshake secures a new connection.
func (r *rotating) ClientHandshake(ctx context.Context, authority string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(r.current()).ClientHandshake(ctx, authority, c)
}

// Clone returns the credentials themselves, since all of their state is in the files.
func (r *rotating) Clone() credentials.TransportCredentials { return r }

// current returns the files' content. If the files cannot be used, for example because only one of
// two has been replaced so far, it returns their last usable content.
func (r *rotating) current() *tls.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now, err := r.load(); err == nil {
		r.last = now
	}
	return r.last
}
