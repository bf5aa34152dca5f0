package remotehosts

import (
	"bytes"
	"context"
	"encoding/gob"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A request is read up to its bound.
func TestRequestsAreBounded(t *testing.T) {
	for body, want := range map[string]int{
		`{"workflow_id":"iris"}`: http.StatusOK,
		`{"workflow_id":`:        http.StatusBadRequest,
		`{"workflow_id":"` + strings.Repeat("x", maxMessage) + `"}`: http.StatusRequestEntityTooLarge,
	} {
		answer := httptest.NewRecorder()
		var in outputRequest
		ok := read(answer, httptest.NewRequest(http.MethodPost, "/output", strings.NewReader(body)), &in)
		assert.Equal(t, want, answer.Code)
		assert.Equal(t, want == http.StatusOK, ok)
	}
}

// answering is a transport whose answers all have this body.
type answering []byte

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(a))}, nil
}

// A piece of output is read up to its bound, and earlier pieces are kept.
func TestPiecesAreBounded(t *testing.T) {
	var sent bytes.Buffer
	pieces := gob.NewEncoder(&sent)
	for _, p := range []piece{{Path: "a", Data: make([]byte, maxPiece/2)}, {Path: "a", Data: make([]byte, maxPiece/2)}, {Path: "a", Data: make([]byte, maxPiece+1)}} {
		require.NoError(t, pieces.Encode(p))
	}
	h := &host{client: &http.Client{Transport: answering(sent.Bytes())}}
	dir := t.TempDir()
	err := h.copyOutput(context.Background(), outputRequest{}, dir, func(error) {})
	assert.EqualError(t, err, "it sends more than 8 MiB of a file at once")
	assert.FileExists(t, dir+"/a")
}
