package codec_test

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/trust/codec"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// line returns a line for a key file.
func line(id string, size int) string {
	key := make([]byte, size)
	_, _ = rand.Read(key)
	return id + " " + base64.StdEncoding.EncodeToString(key) + "\n"
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

func keys(t *testing.T, text string) (*codec.Keys, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	write(t, file, text)
	k := must.Get(codec.Open(file))(t)
	return k, file
}

func payload(t *testing.T, v any) *commonpb.Payload {
	t.Helper()
	p := must.Get(converter.GetDefaultDataConverter().ToPayload(v))(t)
	return p
}

func encode(t *testing.T, k *codec.Keys, v any) *commonpb.Payload {
	t.Helper()
	out := must.Get(k.Encode([]*commonpb.Payload{payload(t, v)}))(t)
	return out[0]
}

// decode returns a payload's text, or why that fails.
func decode(t *testing.T, k *codec.Keys, p *commonpb.Payload) (text string, err error) {
	t.Helper()
	out := must.Get(k.Decode([]*commonpb.Payload{p}))(t)
	return text, codec.Converter.FromPayload(out[0], &text)
}

func TestRotation(t *testing.T) {
	first, second := line("2026-10", 32), line("2026-11", 32)
	k, file := keys(t, "# ours\n\n"+first)
	old := encode(t, k, "canary")
	assert.NotContains(t, old.String(), "canary")
	assert.Equal(t, "2026-10", string(old.Metadata["encryption-key-id"]))
	assert.NotEqual(t, old.Data, encode(t, k, "canary").Data, "equal payloads do not look equal")

	write(t, file, second+first)
	assert.Equal(t, "2026-10", string(encode(t, k, "canary").Metadata["encryption-key-id"]), "the last one encodes")
	write(t, file, first+second+"\n")
	assert.Equal(t, "2026-11", string(encode(t, k, "canary").Metadata["encryption-key-id"]))
	text := must.Get(decode(t, k, old))(t)
	assert.Equal(t, "canary", text)

	write(t, file, second+"half of a li")
	assert.Equal(t, "2026-11", string(encode(t, k, "canary").Metadata["encryption-key-id"]), "a file that cannot be used changes nothing")
	text = must.Get(decode(t, k, old))(t)
	assert.Equal(t, "canary", text)

	write(t, file, second+"# without the first\n")
	_, err := decode(t, k, old)
	var missing *spec.MissingKeyError
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, "2026-10", missing.ID)
	assert.ErrorContains(t, err, `"2026-10"`)
}

func TestWhatIsNotOurs(t *testing.T) {
	k, _ := keys(t, line("a", 32))
	text := must.Get(decode(t, k, payload(t, "plain")))(t)
	assert.Equal(t, "plain", text, "histories from before the codec can be read")

	// The payload is decoded with another key of the same name, and after a change.
	other, _ := keys(t, line("a", 32))
	var missing *spec.MissingKeyError
	_, err := decode(t, other, encode(t, k, "canary"))
	require.ErrorAs(t, err, &missing)
	changed := encode(t, k, "canary")
	changed.Data[len(changed.Data)-1]++
	_, err = decode(t, k, changed)
	require.ErrorAs(t, err, &missing)
	_, err = decode(t, k, &commonpb.Payload{Metadata: changed.Metadata})
	require.ErrorAs(t, err, &missing)
}

func TestFilesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "keys")
	for _, c := range []struct{ text, want string }{
		{"", "it contains no key"},
		{"# nothing\n", "it contains no key"},
		{"2026-11\n", "line 1 has 1 words"},
		{line("a", 32) + "b c d\n", "line 2 has 3 words"},
		{"a %%%\n", `line 1: the key "a" is not in base64`},
		{line("a", 16), `line 1: the key "a" has 16 bytes, but needs 32`},
		{line("a", 32) + line("b", 32) + line("a", 32), `line 3: key "a" appears twice`},
		{"a " + strings.Repeat("A", 1<<20), "token too long"},
	} {
		write(t, file, c.text)
		_, err := codec.Open(file)
		require.ErrorContains(t, err, c.want)
		assert.ErrorContains(t, err, file)
		if words := strings.Fields(c.text); len(words) > 1 && len(words[1]) > 8 {
			assert.NotContains(t, err.Error(), words[1], "keys are not shown")
		}
	}
	write(t, file, line("a", 32))
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660} {
		require.NoError(t, os.Chmod(file, mode))
		_, err := codec.Open(file)
		assert.ErrorContains(t, err, fmt.Sprintf("(mode %04o); run chmod 600", mode))
	}
	_, err := codec.Open(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = codec.Open(dir)
	assert.ErrorContains(t, err, "is not a file")
}

// A failure caused by a missing key is not retried.
func TestFailures(t *testing.T) {
	err := fmt.Errorf("unable to decode: %w", spec.MissingKey(map[string][]byte{"encoding": []byte("binary/encrypted"), "encryption-key-id": []byte("a")}))
	f := codec.Failures.ErrorToFailure(err)
	assert.True(t, f.GetApplicationFailureInfo().GetNonRetryable())
	assert.Contains(t, f.GetMessage(), `the key "a"`)
	f = codec.Failures.ErrorToFailure(errors.New("other"))
	assert.False(t, f.GetApplicationFailureInfo().GetNonRetryable())

	// This failure and its cause were encoded with an unknown key.
	k, _ := keys(t, line("b", 32))
	f.Message, f.EncodedAttributes = "Encoded failure", encode(t, k, map[string]string{"message": "canary"})
	var app *temporal.ApplicationError
	require.ErrorAs(t, codec.Failures.FailureToError(f), &app)
	assert.Contains(t, app.Message(), `the key "b"`)
}
