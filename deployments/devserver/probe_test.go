package devserver

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// handshakes fail, and tell how much time they had.
type handshakes struct {
	credentials.TransportCredentials
	time chan time.Duration
}

func (h handshakes) ClientHandshake(ctx context.Context, _ string, _ net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if until, ok := ctx.Deadline(); ok {
		select {
		case h.time <- time.Until(until):
		default: // it was told
		}
	}
	return nil, nil, errors.New("refused")
}

// A slow processor takes long for a handshake, however soon the next is tried.
func TestTheHandshakeOfTheProbeHasTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	h := handshakes{insecure.NewCredentials(), make(chan time.Duration, 1)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- awaitReady(ctx, listener.Addr().String(), "default", h) }()
	select {
	case had := <-h.time:
		assert.Greater(t, had, 10*time.Second)
	case <-ctx.Done():
		assert.Fail(t, "no handshake with a bound")
	}
	cancel()
	assert.Error(t, <-ended)
}
