package hostservice

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// keeping returns a host that keeps archives.
func keeping(t *testing.T) (*Server, *shipped.Store, string) {
	t.Helper()
	state := t.TempDir()
	store := shipped.Open(state)
	s, err := Listen(Config{Host: "host-b", StateDir: state, Listen: "127.0.0.1", Archives: store})
	require.NoError(t, err)
	go s.Serve(func(context.Context, runkey.Run) {}, nil)
	t.Cleanup(s.Close)
	return s, store, state
}

func clientOf(t *testing.T, s *spec.HostService) *Client {
	c := NewClient(*s, "")
	t.Cleanup(c.Close)
	return c
}

// buffer is a sink.
type buffer struct{ bytes.Buffer }

func (b *buffer) Len() int64 { return int64(b.Buffer.Len()) }

func TestArchives(t *testing.T) {
	s, store, state := keeping(t)
	content := []byte(strings.Repeat("any bytes will do\n", 10_000))
	sum := sha256.Sum256(content)
	a := spec.Archive{Digest: hex.EncodeToString(sum[:]), Size: len(content)}
	reader := func() io.ReadCloser { return io.NopCloser(bytes.NewReader(content)) }
	stores := clientOf(t, s.DescribeStore())

	wrong := a
	wrong.Digest = strings.Repeat("0", 64)
	_, err := stores.StoreArchive(t.Context(), wrong, shipped.Upload{WorkflowID: "iris"}, reader())
	assert.ErrorContains(t, err, "host host-b at "+s.Address()+": the archive has the digest "+a.Digest)
	assert.False(t, store.Has(wrong.Digest))
	wrong.Digest = "../evil"
	_, err = stores.StoreArchive(t.Context(), wrong, shipped.Upload{WorkflowID: "iris"}, reader())
	require.Error(t, err)
	_, err = stores.StoreArchive(t.Context(), a, shipped.Upload{WorkflowID: ""}, reader())
	assert.ErrorContains(t, err, "give the digest of the archive, its length, and the run")

	from, err := stores.StoreArchive(t.Context(), a, shipped.Upload{WorkflowID: "iris"}, reader())
	require.NoError(t, err)
	assert.True(t, store.Has(a.Digest))
	var got buffer
	got.Write(content[:1000]) // these bytes are from an earlier try
	require.NoError(t, clientOf(t, from).ReadArchive(t.Context(), a, &got))
	assert.Equal(t, content, got.Bytes())

	less := a
	less.Size = 2000 // of the directory that the run claims to ship
	got.Reset()
	assert.ErrorContains(t, clientOf(t, from).ReadArchive(t.Context(), less, &got), "it sends more than the 2000 bytes of the archive")
	assert.Equal(t, 2001, got.Buffer.Len())

	unending, w := io.Pipe()
	again, err := stores.StoreArchive(t.Context(), a, shipped.Upload{WorkflowID: "other"}, unending)
	require.NoError(t, w.Close())
	require.NoError(t, err, "it is there, and need not be sent")
	assert.Equal(t, from, again)
	notes, err := filepath.Glob(filepath.Join(state, "shipped", "uploads", a.Digest+"-*"))
	require.NoError(t, err)
	assert.Len(t, notes, 2, "two runs have it from here")

	for name, service := range map[string]*spec.HostService{
		"to read it": from, "of a run": s.Describe(runkey.Run{RunID: "0199-aa"}, "/logs", nil), "of another archive": s.DescribeArchive(wrong.Digest),
	} {
		_, err := clientOf(t, service).StoreArchive(t.Context(), a, shipped.Upload{WorkflowID: "iris"}, reader())
		assert.ErrorIs(t, err, fs.ErrNotExist, "a token "+name)
	}
	_, err = NewClient(*from, "0199-aa").List(t.Context())
	assert.ErrorIs(t, err, fs.ErrNotExist, "the files of runs are not for it")
}
