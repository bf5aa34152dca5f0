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

	"github.com/clusterrun/clusterrun/workers/embedded"
)

const (
	// tlsAlert is the prefix of crypto/tls's error for an alert from the peer.
	tlsAlert = "remote error: tls: "
	// alertBound is the maximum time to wait for an alert.
	alertBound = time.Second

	// refuses is the prefix of the error for a request that the server does not allow.
	refuses = "the Temporal server refuses "

	wantsTLS = "it may require TLS: set TEMPORAL_TLS=true, or a client certificate with TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH"
)

// remedies maps connection errors to remedies.
var remedies = []struct{ said, remedy string }{
	{tlsAlert, "it refuses the client certificate; set one that it accepts, with its key, as TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH or in a profile"},
	{"x509: ", "its certificate is not trusted; name its authority with TEMPORAL_TLS_SERVER_CA_CERT_PATH, and its name with TEMPORAL_TLS_SERVER_NAME"},
	{"first record does not look like a TLS handshake", "it does not use TLS; remove the TLS settings and the API key"},
	// The error depends on how much we have sent before the server closes the connection.
	{"error reading server preface: EOF", wantsTLS},
	{"connection reset by peer", wantsTLS},
	{"broken pipe", wantsTLS},
}

// alert returns the alert sent by a server that closes a connection. A server that refuses a
// certificate sends the alert after the client's first request, which may fail before the alert
// arrives.
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

// An unreachedError is the reason why a server cannot be reached, without gRPC's message, which the
// wrapped error contains.
type unreachedError struct {
	text string
	err  error
}

func (e *unreachedError) Error() string { return e.text }
func (e *unreachedError) Unwrap() error { return e.err }

// unreached returns why the server cannot be reached, and the remedy.
func (o Options) unreached(address string, err error) error {
	if _, after, refused := strings.Cut(err.Error(), refuses); refused {
		return &unreachedError{refuses + after, err}
	}
	why := plainCause(err)
	if o.Embedded != "" {
		if strings.Contains(why, Late) {
			why = "no answer in time"
		}
		return &unreachedError{fmt.Sprintf("the embedded Temporal server at %s cannot be reached (%s); if its process is suspended, resume it, or kill it and the next command starts a new server; see the log at %s", address, why, embedded.Home{Dir: o.Embedded}.Log()), err}
	}
	for _, r := range remedies {
		if strings.Contains(err.Error(), r.said) {
			return &unreachedError{fmt.Sprintf("no connection to the Temporal server at %s (%s): %s", address, why, r.remedy), err}
		}
	}
	return &unreachedError{fmt.Sprintf("no Temporal server at %s (%s); check --address or TEMPORAL_ADDRESS, or omit both to use the embedded server", address, why), err}
}

// plainCause returns the innermost message of an error wrapped by gRPC and Go, such as "connection
// refused".
func plainCause(err error) string {
	text := err.Error()
	if strings.Contains(text, context.DeadlineExceeded.Error()) {
		return "no answer in time"
	}
	for _, tls := range []string{tlsAlert, "x509: "} {
		if _, after, ok := strings.Cut(text, tls); ok {
			after, _, _ = strings.Cut(after, "\n")
			return strings.Trim(after, `"`)
		}
	}
	if strings.Contains(text, "no children to pick from") { // a name without addresses
		return "no such host"
	}
	text, _, _ = strings.Cut(text, "\n")
	return strings.Trim(text[strings.LastIndex(text, ": ")+1:], ` "`)
}

// Late is the error for a request that a server accepts but does not answer.
const Late = "the Temporal server does not answer in time; check whether its database is up"

// sayRefused adds the remedy to the error of a request that the server does not allow or does not
// answer in time.
func sayRefused(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	s, _ := status.FromError(err)
	var remedy string
	switch s.Code() {
	case codes.PermissionDenied:
		remedy = "its operator must grant that to this program's client certificate or API key, in this namespace"
	case codes.Unauthenticated:
		remedy = "it does not accept this program's API key or certificate, or they have expired: use others (TEMPORAL_API_KEY, --api-key-file, TEMPORAL_TLS_CLIENT_CERT_PATH)"
	case codes.DeadlineExceeded:
		return status.Error(s.Code(), Late)
	default:
		return err
	}
	p := s.Proto()
	p.Message = fmt.Sprintf(refuses+"%s (%s): %s", path.Base(method), s.Message(), remedy)
	return status.ErrorProto(p)
}
