package server

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The server is asked again after the client has reconnected, even during a request.
func TestAnIdentityIsKnownForAConnection(t *testing.T) {
	var k Known
	asked := 0
	identity := func(id string, during func()) string {
		got, err := k.identity("default", func() (string, error) {
			asked++
			during()
			return id, nil
		})
		require.NoError(t, err)
		return got
	}
	reconnect := func() { k.TagConn(t.Context(), nil) }
	nothing := func() {}
	_, err := k.identity("default", func() (string, error) { return "", errors.New("away") })
	require.Error(t, err)
	assert.Equal(t, "one", identity("one", nothing))
	assert.Equal(t, "one", identity("two", nothing))
	assert.Equal(t, 1, asked)
	reconnect()
	assert.Equal(t, "two", identity("two", reconnect))
	assert.Equal(t, "three", identity("three", nothing))
	assert.Equal(t, 3, asked)
}
