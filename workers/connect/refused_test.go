package connect

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// An unreachable server's error message does not contain gRPC's words, but the wrapped error does.
func TestUnreachedIsPlain(t *testing.T) {
	const dialing = `failed reaching server: connection error: desc = "transport: Error while dialing: dial tcp `
	for wrapped, want := range map[string]string{
		dialing + `127.0.0.1:9: connect: connection refused"`:                                                           "no Temporal server at a:1 (connection refused); check --address",
		dialing + `lookup a on 10.0.0.2:53: no such host"`:                                                              "no Temporal server at a:1 (no such host); check --address",
		"failed reaching server: the Temporal server refuses GetSystemInfo (unknown key): it does not know the API key": "the Temporal server refuses GetSystemInfo (unknown key): it does not know the API key",
		`name resolver error: no children to pick from`:                                                                 "no Temporal server at a:1 (no such host); check --address",
		"failed reaching server: context deadline exceeded":                                                             "no Temporal server at a:1 (no answer in time); check --address",
		`connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"`: "no connection to the Temporal server at a:1 (certificate signed by unknown authority): its certificate is not trusted",
		`connection error: desc = "error reading server preface: EOF"` + "\n" + "remote error: tls: certificate required":                                         "no connection to the Temporal server at a:1 (certificate required): it refuses the client certificate",
		`connection error: desc = "error reading server preface: EOF"`:                                                                                            "no connection to the Temporal server at a:1 (EOF): it may require TLS",
	} {
		err := Options{}.unreached("a:1", errors.New(wrapped))
		assert.Contains(t, err.Error(), want)
		assert.EqualError(t, errors.Unwrap(err), wrapped)
		for _, word := range []string{"desc", "transport", "dial", "failed reaching"} {
			assert.NotContains(t, err.Error(), word)
		}
	}
	own := Options{Embedded: "/home/server"}.unreached("a:1", errors.New(Late))
	assert.ErrorContains(t, own, "the embedded Temporal server at a:1 cannot be reached (no answer in time)")
	assert.NotContains(t, own.Error(), "--address", "it was not given")
	assert.ErrorIs(t, Options{}.unreached("a:1", context.Canceled), context.Canceled)
}

// A server without its database accepts requests but does not answer them.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	silent := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		return status.FromContextError(context.DeadlineExceeded).Err()
	}
	err := serviceerror.FromStatus(status.Convert(sayRefused(t.Context(), "", nil, nil, nil, silent)))
	require.EqualError(t, err, "the Temporal server does not answer in time; check whether its database is up")
	var late *serviceerror.DeadlineExceeded
	require.ErrorAs(t, err, &late)
}
