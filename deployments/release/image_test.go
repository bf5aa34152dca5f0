package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// unpack writes the files of a tarball below dir.
func unpack(t *testing.T, path, dir string) {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		content := must.Get(io.ReadAll(r))(t)
		name := filepath.Join(dir, filepath.Clean("/"+h.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, content, 0o600))
	}
}

// imageIn reads the only image of a tarball, all of whose digests must be right.
func imageIn(t *testing.T, path string) v1.Image {
	t.Helper()
	dir := t.TempDir()
	unpack(t, path, dir)
	index := must.Get(layout.ImageIndexFromPath(dir))(t)
	manifest := must.Get(index.IndexManifest())(t)
	require.Len(t, manifest.Manifests, 1)
	assert.Equal(t, spec.Version, manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
	image := must.Get(index.Image(manifest.Manifests[0].Digest))(t)
	require.NoError(t, validate.Image(image))
	return image
}

func TestImage(t *testing.T) {
	dir := t.TempDir()
	when := time.Unix(1700000000, 0).UTC()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o700))
		return path
	}
	ca := write("ca.pem", "-----BEGIN CERTIFICATE-----\n")
	programs := []string{write("clusterrun", "one"), write("clusterrun-devserver", "two")}
	first, second := filepath.Join(dir, "first.tar"), filepath.Join(dir, "second.tar")
	for _, path := range []string{first, second} {
		require.NoError(t, writeImage(path, "arm64", ca, programs, when))
	}
	a := must.Get(os.ReadFile(first))(t)
	b := must.Get(os.ReadFile(second))(t)
	assert.True(t, bytes.Equal(a, b), "the same programs make the same bytes")

	image := imageIn(t, first)
	config := must.Get(image.ConfigFile())(t)
	assert.Equal(t, "linux/arm64", config.Platform().String())
	assert.True(t, when.Equal(config.Created.Time))
	assert.Equal(t, "65532:65532", config.Config.User)
	assert.Equal(t, []string{"/usr/bin/clusterrun"}, config.Config.Entrypoint)
	assert.Contains(t, config.Config.Env, "CLUSTERRUN_STATE_DIR=/state")
	assert.Contains(t, config.Config.Volumes, "/state")

	layers := must.Get(image.Layers())(t)
	require.Len(t, layers, 1)
	r := must.Get(layers[0].Uncompressed())(t)
	defer r.Close()
	type file struct {
		mode    fs.FileMode
		owner   int
		content string
	}
	got := map[string]file{}
	for files := tar.NewReader(r); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		content := must.Get(io.ReadAll(files))(t)
		assert.True(t, when.Equal(h.ModTime), h.Name)
		got[h.Name] = file{h.FileInfo().Mode(), h.Uid, string(content)}
	}
	assert.Equal(t, file{fs.ModeDir | 0o700, nobody, ""}, got["state/"])
	assert.Equal(t, file{fs.ModeDir | fs.ModeSticky | 0o777, 0, ""}, got["tmp/"])
	assert.Equal(t, file{0o755, 0, "one"}, got["usr/bin/clusterrun"])
	assert.Equal(t, file{0o755, 0, "two"}, got["usr/bin/clusterrun-devserver"])
	assert.Equal(t, file{0o644, 0, "-----BEGIN CERTIFICATE-----\n"}, got["etc/ssl/certs/ca-certificates.crt"])
	assert.Contains(t, got["etc/passwd"].content, "nonroot:x:65532:65532:")

	require.ErrorContains(t, writeImage(first, "arm64", programs[0], programs, when), "has no certificates in PEM")
	require.ErrorIs(t, writeImage(first, "arm64", ca, []string{filepath.Join(dir, "none")}, when), fs.ErrNotExist)
}
