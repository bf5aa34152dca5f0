package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// NextVersion is the version of [NextClusterrun].
const NextVersion = "99.0.0"

// next lists the source changes for the next version: its number, and an additional spec field.
// Each consists of a path, the text to replace, and its replacement.
var next = []struct{ file, text, with string }{
	{"workflows/spec/version.go", `"` + spec.Version + `"`, `"` + NextVersion + `"`},
	{"workflows/spec/runspec.go", "\tSignature *Signature `json:\"signature,omitempty\"`\n", "\tSignature *Signature `json:\"signature,omitempty\"`\n\tNice *int `json:\"nice,omitempty\"`\n"},
	{"workflows/spec/fields.go", "var fields = []field{\n", "var fields = []field{\n\t{of: \"RunSpec.nice\", syntax: elsewhere, doc: \"A field of a next version.\", example: \"nice: 5\"},\n"},
}

var nextOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "clusterrun-next-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	replace := map[string]string{}
	for i, change := range next {
		path := filepath.Join(Root(), change.file)
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(text), change.text); n != 1 {
			return "", fmt.Errorf("%s has %q %d times", change.file, change.text, n)
		}
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replace[path], []byte(strings.Replace(string(text), change.text, change.with, 1)), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file, out := filepath.Join(dir, "overlay.json"), filepath.Join(Root(), "bin", "next")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-overlay", file, "-o", out+"/", "./starter/clusterrun", "./starter/clusterrun-supervisor")
	cmd.Dir = Root()
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the next version: %w\n%s", err, b)
	}
	return filepath.Join(out, "clusterrun"), nil
})

// NextClusterrun returns the path to a later version, built from the same source with a different
// version number and an additional spec field, nice.
func NextClusterrun(t testing.TB) string { return program(t, nextOnce) }

// Installed is a replaceable program on disk.
type Installed struct {
	t    testing.TB
	path string
}

// Install puts a program on disk.
func Install(t testing.TB, program string) *Installed {
	t.Helper()
	i := &Installed{t, filepath.Join(t.TempDir(), "clusterrun")}
	i.Replace(program)
	return i
}

// Replace replaces the program.
func (i *Installed) Replace(program string) {
	i.t.Helper()
	link := i.path + ".new"
	require.NoError(i.t, os.Symlink(program, link))
	require.NoError(i.t, os.Rename(link, i.path))
}

// StartWorker is [Server.StartWorker] with that program.
func (i *Installed) StartWorker(s *Server, args ...string) *Worker {
	i.t.Helper()
	w := s.newWorker(i.t, i.path, nil, args...)
	w.Restart()
	return w
}
