package connect

import (
	"context"
	"path"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// redial paces attempts to reach a server that is away. Once one of a run's hosts has contact, the
// other hosts' leases last only a few seconds more, so all hosts must reconnect within about a
// second; the SDK would wait up to ten.
var redial = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: dialBound,
}

// pollWhenReady makes polls wait for a connection. Otherwise they would fail, and the SDK repeats a
// failed poll only after up to ten seconds, while the host would not get tasks from a server that
// is already back.
func pollWhenReady(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if strings.HasPrefix(path.Base(method), "Poll") {
		opts = append(opts, grpc.WaitForReady(true))
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}
