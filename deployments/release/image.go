package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// nobody is the user and group of the container, as in other images without a shell.
const nobody = 65532

const (
	users  = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/state:/sbin/nologin\n"
	groups = "root:x:0:\nnonroot:x:65532:\n"
)

// writeImage writes a container image as a tarball of an OCI layout: the programs, the
// certificates of the authorities in ca, and a state directory. The entrypoint is clusterrun.
func writeImage(out, architecture, ca string, programs []string, when time.Time) error {
	files, err := imageFiles(ca, programs, when)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{
		Created: v1.Time{Time: when}, CreatedBy: "clusterrun " + spec.Version,
	}})
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	configure(config, architecture, when)
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(out), ".image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	index, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	if err := index.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": spec.Version})); err != nil {
		return err
	}
	return packLayout(out, dir, when)
}

// configure says how a container is started.
func configure(of *v1.ConfigFile, architecture string, when time.Time) {
	of.Architecture, of.OS, of.Created = architecture, "linux", v1.Time{Time: when}
	of.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", nobody, nobody),
		Entrypoint: []string{"/usr/bin/clusterrun"},
		Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/state", "CLUSTERRUN_STATE_DIR=/state"},
		Volumes:    map[string]struct{}{"/state": {}},
		WorkingDir: "/state",
		// SIGTERM has the host worker stop its tasks, with their graces.
		StopSignal: "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":   "clusterrun",
			"org.opencontainers.image.version": spec.Version,
		},
	}
}

// imageFiles returns the only layer.
func imageFiles(ca string, programs []string, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(name string, mode int64, owner int, content []byte) error {
		h := &tar.Header{Name: name, Mode: mode, Uid: owner, Gid: owner, ModTime: when, Size: int64(len(content)), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	certificates, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(certificates, []byte("-----BEGIN CERTIFICATE-----")) {
		return nil, fmt.Errorf("%s has no certificates in PEM; give the file of the authorities that the programs trust", ca)
	}
	for _, f := range []struct {
		name    string
		mode    int64
		owner   int
		content []byte
	}{
		{"etc/", 0o755, 0, nil},
		{"etc/group", 0o644, 0, []byte(groups)},
		{"etc/passwd", 0o644, 0, []byte(users)},
		{"etc/ssl/", 0o755, 0, nil},
		{"etc/ssl/certs/", 0o755, 0, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, certificates},
		{"state/", 0o700, nobody, nil},
		{"tmp/", 0o1777, 0, nil},
		{"usr/", 0o755, 0, nil},
		{"usr/bin/", 0o755, 0, nil},
	} {
		if err := add(f.name, f.mode, f.owner, f.content); err != nil {
			return nil, err
		}
	}
	for _, program := range programs {
		content, err := os.ReadFile(program)
		if err != nil {
			return nil, err
		}
		if err := add("usr/bin/"+filepath.Base(program), 0o755, 0, content); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

// packLayout writes the files below dir, in the order of their names, into a tarball.
func packLayout(out, dir string, when time.Time) (err error) {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, ModTime: when, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}
