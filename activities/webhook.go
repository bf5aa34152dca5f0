package activities

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// postBound limits the time a webhook may take to answer.
	postBound = 15 * time.Second
	// maxAnswer bounds the part of an answer that is read, and maxWords the part that an error
	// quotes, in bytes.
	maxAnswer, maxWords = 4 << 10, 300
)

// hookRefusedError is returned if an attempt has failed in a way that another attempt cannot fix.
type hookRefusedError struct{ Message string }

func (e *hookRefusedError) Error() string { return e.Message }

// hooks sends the requests. It does not follow redirects, which could lead to a host that the policy
// has not checked.
var hooks = &http.Client{
	Timeout:       postBound,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// postNotice sends a notice to a webhook. It is signed unless the secret is empty. Errors contain
// only the address's host, since the rest of the address may be a secret.
func postNotice(ctx context.Context, address, id, secret string, body []byte, now time.Time) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return &hookRefusedError{"the webhook's address cannot be used"}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "clusterrun/"+spec.Version)
	stamp := strconv.FormatInt(now.Unix(), 10)
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", stamp)
	if secret != "" {
		r.Header.Set("webhook-signature", SignNotice(secret, id, stamp, body))
	}
	answer, err := hooks.Do(r)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // without the address
		}
		return fmt.Errorf("%s: %w", r.URL.Host, err)
	}
	defer answer.Body.Close()
	words, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // the status decides
	text := fmt.Sprintf("%s answered %s", r.URL.Host, answer.Status)
	if line := strings.TrimSpace(strings.ToValidUTF8(string(words), "\uFFFD")); line != "" && answer.StatusCode >= 300 {
		text += ", " + shorten.Text(strings.Join(strings.Fields(line), " "), maxWords)
	}
	return judgeHook(answer, text)
}

// judgeHook converts an answer's status to the attempt's error.
func judgeHook(answer *http.Response, text string) error {
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		return errors.New(text)
	}
	return &hookRefusedError{text}
}

// SignNotice returns the signature of a body as defined by Standard Webhooks. A secret that begins
// with whsec_ contains the key in base64; any other secret is the key itself.
func SignNotice(secret, id, timestamp string, body []byte) string {
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
			key = decoded
		}
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, timestamp)
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
