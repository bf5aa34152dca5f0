package connect

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// tlsAlert matches what Go's TLS package reports of an alert from the other side.
	tlsAlert = "remote error: tls: "
	// alertBound is the longest time to wait for an alert.
	alertBound = time.Second

	wantsTLS = "it may want TLS: set TEMPORAL_TLS=true, or a client certificate with TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH"
)

// remedies maps errors of a connection to remedies.
var remedies = []struct{ said, remedy string }{
	{tlsAlert, "it refuses the client certificate: give one that it accepts, with its key, as TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH or in a profile"},
	{"x509: ", "its certificate is not trusted here: name who vouches for it with TEMPORAL_TLS_SERVER_CA_CERT_PATH, and the name in it with TEMPORAL_TLS_SERVER_NAME"},
	{"first record does not look like a TLS handshake", "it speaks no TLS: leave out the TLS settings and the API key"},
	// The error depends on how much we have sent before the server ends the connection.
	{"error reading server preface: EOF", wantsTLS},
	{"connection reset by peer", wantsTLS},
	{"broken pipe", wantsTLS},
}

// alert returns the alert with which the server ends a connection. A server that refuses a
// certificate sends it after the client's first request, which may fail before that.
func (o Options) alert(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), alertBound)
	defer cancel()
	c, err := o.Conn(ctx)
	if err != nil {
		return nil
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(alertBound))
	if _, err := c.Read(make([]byte, 1)); err != nil && strings.Contains(err.Error(), tlsAlert) {
		return err
	}
	return nil
}

// unreached returns why the server cannot be reached, and the remedy.
func unreached(address string, err error) error {
	for _, r := range remedies {
		if strings.Contains(err.Error(), r.said) {
			return fmt.Errorf("no connection to the Temporal server at %s: %s: %w", address, r.remedy, err)
		}
	}
	return fmt.Errorf("no Temporal server answers at %s (give another with --address or TEMPORAL_ADDRESS): %w", address, err)
}

// sayRefused adds the remedy to the error of a request that the server does not allow.
func sayRefused(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	s, _ := status.FromError(err)
	var remedy string
	switch s.Code() {
	case codes.PermissionDenied:
		remedy = "its operator has to allow that to the client certificate or API key of this program, in this namespace"
	case codes.Unauthenticated:
		remedy = "it does not know the API key or certificate of this program, or they have expired: give others (TEMPORAL_API_KEY, --api-key-file, TEMPORAL_TLS_CLIENT_CERT_PATH)"
	default:
		return err
	}
	p := s.Proto()
	p.Message = fmt.Sprintf("the Temporal server refuses %s (%s): %s", path.Base(method), s.Message(), remedy)
	return status.ErrorProto(p)
}
