package devserver

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/common/primitives"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

const systemNamespace = primitives.SystemLocalNamespace

// usage tracks whether the server is in use. It is if a client's request is in flight, or if one
// finished less than limit ago. Long polls are also requests, so workers that wait for work and
// clients that wait for a result count as use.
type usage struct {
	limit  time.Duration // 0 if the server never exits when idle
	onIdle func()

	mu       sync.Mutex
	inFlight int
	timer    *time.Timer // nil until watch
}

// watch starts the timer. It is called only once clients can use the server.
func (u *usage) watch() {
	if u.limit == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.timer = time.AfterFunc(u.limit, u.expire)
	if u.inFlight > 0 {
		u.timer.Stop()
	}
}

func (u *usage) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inFlight++
	if u.timer != nil {
		u.timer.Stop()
	}
}

func (u *usage) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inFlight--
	if u.inFlight == 0 && u.timer != nil {
		u.timer.Reset(u.limit)
	}
}

// expire may have been called just before a request came in, because stopping a timer that has
// fired does nothing. A request that came and went in that moment is missed; it finds the server
// stopping, like one that comes a moment later.
func (u *usage) expire() {
	u.mu.Lock()
	used := u.inFlight > 0
	u.mu.Unlock()
	if !used {
		u.onIdle()
	}
}

// intercept returns a frontend interceptor.
func (u *usage) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if byClient(ctx, req, info.FullMethod) {
		u.begin()
		defer u.end()
	}
	return next(ctx, req)
}

// byClient reports whether a request is from a client. The server's system workers poll through the
// same frontend, and in every namespace, but identify themselves in a header. A health check does
// not count as use.
func byClient(ctx context.Context, req any, method string) bool {
	if strings.HasPrefix(method, "/grpc.health.") {
		return false
	}
	if name := metadata.ValueFromIncomingContext(ctx, headers.ClientNameHeaderName); len(name) > 0 && name[0] == headers.ClientNameServer {
		return false
	}
	if r, ok := req.(interface{ GetNamespace() string }); ok && r.GetNamespace() == systemNamespace {
		return false
	}
	return true
}
