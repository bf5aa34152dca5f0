package activities

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The example of the specification of Standard Webhooks.
func TestSignature(t *testing.T) {
	got := SignNotice("whsec_plJ3nmyCDGBKInavdOK15jsl", "msg_loFOjxBNrRLzqYUf", "1731705121", []byte(`{"event_type":"ping","data":{"success":true}}`))
	assert.Equal(t, "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=", got)
	assert.NotEqual(t, got, SignNotice("plJ3nmyCDGBKInavdOK15jsl", "msg_loFOjxBNrRLzqYUf", "1731705121", []byte(`{"event_type":"ping","data":{"success":true}}`)))
}

func TestPostNotice(t *testing.T) {
	var status int
	var header http.Header
	var asked *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte("these\nare words" + strings.Repeat(" more", 10_000)))
	}))
	defer server.Close()
	post := func(code int, h http.Header) error {
		status, header = code, h
		return postNotice(t.Context(), server.URL+"/secret-path", "id-1", "key", []byte("{}"), time.Unix(1000, 0))
	}
	var refused *hookRefusedError

	require.NoError(t, post(204, nil))
	assert.Equal(t, "id-1", asked.Header.Get("webhook-id"))
	assert.Equal(t, "1000", asked.Header.Get("webhook-timestamp"))
	assert.Equal(t, SignNotice("key", "id-1", "1000", []byte("{}")), asked.Header.Get("webhook-signature"))
	assert.Equal(t, "application/json", asked.Header.Get("Content-Type"))

	err := post(500, nil)
	require.ErrorContains(t, err, "answered 500 Internal Server Error, these are words")
	assert.Less(t, len(err.Error()), 500)
	assert.NotErrorAs(t, err, &refused)
	assert.NotContains(t, err.Error(), "secret-path")
	assert.NotErrorAs(t, post(429, nil), &refused)
	require.ErrorAs(t, post(404, nil), &refused)
	require.ErrorAs(t, post(302, http.Header{"Location": {"http://169.254.169.254/"}}), &refused, "a redirect is not followed")

	server.Close()
	err = post(200, nil)
	require.Error(t, err)
	assert.NotErrorAs(t, err, &refused)
	assert.NotContains(t, err.Error(), "secret-path")
}
