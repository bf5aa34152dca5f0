package shipped

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const ignoreFile = ".gitignore"

// ignored contains the patterns of files that are not packed. Later patterns take precedence, and
// the caller's exclusions come last.
type ignored struct {
	// above lists the names of the directories from the checkout's root down to the directory that
	// is packed, because the checkout's patterns match paths from its root.
	above    []string
	patterns []pattern
	excluded []pattern
}

// newIgnored reads the .gitignore files above dir, up to the root of its git checkout.
func newIgnored(dir string, exclude []string) (*ignored, error) {
	g := &ignored{}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			if rel, err := filepath.Rel(at, dir); err == nil && rel != "." {
				g.above = strings.Split(rel, "/")
			}
			break
		}
		if at == filepath.Dir(at) {
			break // dir is not in a checkout
		}
	}
	root := dir
	for range g.above {
		root = filepath.Dir(root)
	}
	for i := range g.above {
		domain := g.above[:i]
		f, err := os.Open(filepath.Join(root, filepath.Join(domain...), ignoreFile))
		if err := g.readFrom(f, err, domain); err != nil {
			return nil, err
		}
	}
	for i := range g.above {
		if g.match(g.above[:i+1], true) {
			g.patterns = nil // the checkout ignores the directory itself
		}
	}
	for _, line := range exclude {
		g.excluded = append(g.excluded, parsePattern(line, g.above))
	}
	return g, nil
}

// enter reads the .gitignore of a directory before it is packed.
func (g *ignored) enter(root *os.Root, dir string) error {
	info, err := root.Lstat(path.Join(dir, ignoreFile))
	if err == nil && !info.Mode().IsRegular() {
		return nil // git also ignores such files
	}
	f, err := root.Open(path.Join(dir, ignoreFile))
	return g.readFrom(f, err, g.pathOf(dir))
}

func (g *ignored) readFrom(f *os.File, err error, domain []string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return g.read(f, domain)
}

func (g *ignored) read(r io.Reader, domain []string) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			g.patterns = append(g.patterns, parsePattern(line, domain))
		}
	}
	return lines.Err()
}

// has reports whether a path in the directory is ignored.
func (g *ignored) has(name string, isDir bool) bool {
	return g.match(g.pathOf(name), isDir)
}

func (g *ignored) match(at []string, isDir bool) bool {
	for _, p := range slices.Backward(slices.Concat(g.patterns, g.excluded)) {
		if (isDir || !p.onlyDir) && matches(p.elements, at) {
			return !p.includes
		}
	}
	return false
}

// pathOf returns the elements of a path, from the checkout's root.
func (g *ignored) pathOf(name string) []string {
	if name == "." {
		return g.above
	}
	return slices.Concat(g.above, strings.Split(name, "/"))
}
