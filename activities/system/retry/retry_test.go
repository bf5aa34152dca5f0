package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		began := time.Now()
		assert.NoError(t, Sleep(ctx, time.Hour))
		assert.Equal(t, time.Hour, time.Since(began))
		time.AfterFunc(time.Minute, func() { cancel(errors.New("enough")) })
		assert.EqualError(t, Sleep(ctx, time.Hour), "enough")
		assert.Equal(t, time.Hour+time.Minute, time.Since(began))
	})
}

func TestBackoff(t *testing.T) {
	b := Backoff{First: 2, Most: 10}
	for _, want := range []time.Duration{2, 4, 8, 10, 10} {
		assert.Equal(t, want, b.Next())
	}
	b.Reset()
	assert.Equal(t, time.Duration(2), b.Next())
}
