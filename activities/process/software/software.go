package software

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

const (
	// File has the [Record] of a process.
	File = "software.json"
	// PathsFile has lines from the first Python program of a process: its version, the path of the
	// interpreter, and sys.path.
	PathsFile = "python.paths"
)

// Record is the software that a process used.
type Record struct {
	Host string `json:"host"`
	// Versions are the versions of the host, by name, such as "kernel" and "NVIDIA driver".
	Versions map[string]string `json:"versions"`
	// Python is nil if no Python program is known.
	Python *Python `json:"python,omitempty"`
}

// Python is an environment of Python.
type Python struct {
	Version     string `json:"version"`
	Interpreter string `json:"interpreter"`
	// CUDA is the version that torch was built for.
	CUDA string `json:"cuda,omitempty"`
	// Digest is a digest of the packages, and Packages are their versions by name.
	Digest   string            `json:"digest"`
	Packages map[string]string `json:"packages"`
}

// Of returns the record of the process with a directory.
func Of(host, processDir string) Record {
	return Record{Host: host, Versions: versions("/"), Python: pythonOf(processDir)}
}

const (
	// mostEntries bounds the entries of a directory of packages that are read, and mostPaths the
	// directories.
	mostEntries, mostPaths = 20_000, 64
	// maxPaths bounds a [PathsFile], and maxRecord a [File].
	maxPaths, maxRecord = 64 << 10, 4 << 20
)

// pythonOf returns the environment of the first Python program of a process, or nil if there was
// none so far.
func pythonOf(processDir string) *Python {
	text, err := readSome(filepath.Join(processDir, PathsFile), maxPaths)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if err != nil || len(lines) < 2 {
		return nil
	}
	p := &Python{Version: lines[0], Interpreter: lines[1], Packages: map[string]string{}}
	for _, dir := range lines[2:min(len(lines), 2+mostPaths)] {
		if !filepath.IsAbs(dir) {
			continue
		}
		if p.CUDA == "" {
			p.CUDA = cudaOf(dir)
		}
		for _, entry := range entriesOf(dir) {
			name, version := packageOf(dir, entry)
			if _, known := p.Packages[name]; name != "" && !known { // the first one is imported
				p.Packages[name] = version
			}
		}
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(p.Packages)) {
		fmt.Fprintf(sum, "%s %s\n", name, p.Packages[name])
	}
	p.Digest = hex.EncodeToString(sum.Sum(nil)[:8])
	return p
}

// builtFor finds the version of CUDA in a module of torch.
var builtFor = lazyregexp.New(`(?m)^cuda\b[^=\n]*= *'([0-9.]+)'`)

// cudaOf returns the version of CUDA that torch in a directory was built for.
func cudaOf(dir string) string {
	text, err := readSome(filepath.Join(dir, "torch/version.py"), maxPaths)
	if m := builtFor().FindStringSubmatch(text); err == nil && m != nil {
		return m[1]
	}
	return ""
}

// entriesOf returns the names in a directory, and nothing for another file.
func entriesOf(dir string) []string {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(mostEntries)
	slices.Sort(names)
	return names
}

// packageOf returns the package that an entry of a directory describes, and its version; an empty
// name if it describes none.
func packageOf(dir, entry string) (name, version string) {
	base, isDist := strings.CutSuffix(entry, ".dist-info")
	metadata := "METADATA"
	if !isDist {
		var isEgg bool
		if base, isEgg = strings.CutSuffix(entry, ".egg-info"); !isEgg {
			return "", ""
		}
		metadata = "PKG-INFO"
	}
	name, version, _ = strings.Cut(base, "-")
	if !isDist { // NAME-VERSION-pyX.Y
		version, _, _ = strings.Cut(version, "-py")
	}
	if version == "" {
		version = versionIn(filepath.Join(dir, entry, metadata))
	}
	return normal(name), version
}

// normal returns a name of a package in the form in which names are compared.
func normal(name string) string {
	name = strings.ToLower(name)
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' }), "-")
}

// versionIn returns the version in a file of metadata, or an empty string.
func versionIn(path string) string {
	const head = 8 << 10
	text, err := readSome(path, head)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "Version: "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// readSome returns the beginning of a regular file.
func readSome(path string, most int64) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fs.ErrInvalid)
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	return strings.ToValidUTF8(string(b), "\uFFFD"), err
}

// Write writes the record into the directory of the process.
func (r Record) Write(processDir string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(processDir, File), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}

// Parse parses the content of a [File]. It returns nil for invalid content.
func Parse(b []byte) *Record {
	r := &Record{}
	if len(b) > maxRecord || json.Unmarshal(b, r) != nil {
		return nil
	}
	return r
}
