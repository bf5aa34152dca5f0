package queues

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Functions returns some functions: same returns its argument, fails fails with the text of its
// argument, or with "no" if it has none, and wait waits until release is closed.
func Functions(release <-chan struct{}) map[string]Function {
	return map[string]Function{
		"same": func(_ context.Context, args []any, _ map[string]any) (any, error) { return args[0], nil },
		"fails": func(_ context.Context, args []any, _ map[string]any) (any, error) {
			if len(args) > 0 {
				return nil, errors.New(args[0].(string))
			}
			return nil, errors.New("no")
		},
		"wait": func(ctx context.Context, _ []any, _ map[string]any) (any, error) {
			select {
			case <-release:
				return "released", nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

// Patience returns a context that limits waits for events that must happen.
func Patience(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
