package shipped

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// Options selects the part of a directory to pack.
type Options struct {
	// Exclude contains patterns of files that are not packed, in the syntax of .gitignore.
	Exclude []string
	// Limit is the maximum size of the archive.
	Limit int64
}

// Listing lists what Pack would pack from a directory.
type Listing struct {
	Dir   string
	Files int
	// Size is the archive's size, in bytes.
	Size    int64
	entries []entry
}

type entry struct {
	name   string
	info   fs.FileInfo
	target string // of a symbolic link
}

// Archive is a packed directory, in an unlinked file that disappears when it is closed.
type Archive struct {
	spec.Archive
	file *os.File
}

// Close removes the archive. It may be called on nil.
func (a *Archive) Close() {
	if a != nil {
		_ = a.file.Close()
	}
}

// Reader returns a reader of the whole archive. Readers are independent.
func (a *Archive) Reader() *io.SectionReader { return io.NewSectionReader(a.file, 0, int64(a.Size)) }

const (
	// block is the unit of a tar file, in bytes.
	block = 512
	// maxProblems limits the reported problems of one directory.
	maxProblems = 10
)

// List lists what would be packed from a directory. The error contains a line for each entry that
// cannot be packed.
func List(dir string, o Options) (*Listing, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	stays, err := newIgnored(dir, o.Exclude)
	if err != nil {
		return nil, err
	}
	l := &Listing{Dir: dir, Size: 2 * block}
	var problems []error
	refuse := func(err error) error {
		if problems = append(problems, err); len(problems) == maxProblems {
			problems = append(problems, errors.New("there may be more"))
			return fs.SkipAll
		}
		return nil
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return refuse(err)
		case name == ".":
			return stays.enter(root, name)
		case d.Name() == ".git", stays.has(name, d.IsDir()):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			if err := stays.enter(root, name); err != nil {
				return err
			}
		}
		e, err := newEntry(root, name, d)
		if err != nil {
			return refuse(err)
		}
		l.add(e)
		return nil
	})
	if err = errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}
	if o.Limit > 0 && l.Size > o.Limit {
		return nil, l.tooLarge(o.Limit)
	}
	return l, nil
}

func newEntry(root *os.Root, name string, d fs.DirEntry) (e entry, err error) {
	e.name = name
	if e.info, err = d.Info(); err != nil {
		return e, err
	}
	switch d.Type() {
	case 0, fs.ModeDir:
		return e, nil
	case fs.ModeSymlink:
		if e.target, err = root.Readlink(name); err != nil {
			return e, err
		}
		return e, checkLink(root, name, e.target)
	}
	return e, fmt.Errorf("%s is not a file, a directory or a symbolic link; exclude it", name)
}

// checkLink returns an error for a symbolic link that leads out of the directory. The target need
// not exist.
func checkLink(root *os.Root, name, target string) error {
	inside := !path.IsAbs(target) && filepath.IsLocal(path.Join(path.Dir(name), target))
	if inside {
		// The names do not suffice, because the path may go through other links.
		_, err := root.Stat(name)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return fmt.Errorf("the symbolic link %s -> %s points outside the directory, and its target is not on the hosts; exclude it, or copy the target", name, target)
}

func (l *Listing) add(e entry) {
	l.entries = append(l.entries, e)
	l.Size += e.size()
	if !e.info.IsDir() {
		l.Files++
	}
}

// size returns the number of bytes that an entry adds to the archive, except for the extra blocks
// for a long name.
func (e entry) size() int64 {
	if !e.info.Mode().IsRegular() {
		return block
	}
	return block + (e.info.Size()+block-1)/block*block
}

// tooLarge returns an error that states the size, and lists the largest files and first-level
// directories.
func (l *Listing) tooLarge(limit int64) error {
	const most = 5
	sizes := map[string]int64{}
	for _, e := range l.entries {
		if first, _, below := strings.Cut(e.name, "/"); below {
			sizes[first+"/"] += e.size()
		}
		if !e.info.IsDir() {
			sizes[e.name] = e.size()
		}
	}
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), strings.Compare(a, b))
	})
	largest := list.Of(names[:min(most, len(names))], func(name string) string { return name + " " + units.Bytes(sizes[name]) })
	return fmt.Errorf("%s has %s in %s, but at most %s can be shipped; exclude what the hosts do not need, or raise the limit; the largest: %s",
		l.Dir, units.Bytes(l.Size), units.Count(l.Files, "file", "files"), units.Bytes(limit), strings.Join(largest, ", "))
}

// Pack packs a directory into a file in the directory tmp, which it creates if necessary.
func Pack(ctx context.Context, dir, tmp string, o Options) (_ *Archive, err error) {
	l, err := List(dir, o)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(tmp, "ship-*.tar")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	// Unlink the file now, so that nothing is left if this process is killed.
	if err := os.Remove(f.Name()); err != nil {
		return nil, err
	}
	sum := sha256.New()
	size, err := l.write(ctx, io.MultiWriter(f, sum))
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", l.Dir, err)
	}
	return &Archive{spec.Archive{Digest: hex.EncodeToString(sum.Sum(nil)), Size: int(size), Files: l.Files}, f}, nil
}

// write writes the archive, and returns its size.
func (l *Listing) write(ctx context.Context, w io.Writer) (int64, error) {
	root, err := os.OpenRoot(l.Dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	out := &counted{Writer: w}
	archive := tar.NewWriter(out)
	for _, e := range l.entries {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := e.write(archive, root); err != nil {
			return 0, err
		}
	}
	err = archive.Close()
	return out.n, err
}

func (e entry) write(archive *tar.Writer, root *os.Root) error {
	h := tar.Header{Name: e.name, Format: tar.FormatPAX, Mode: 0o644}
	switch mode := e.info.Mode(); {
	case mode.IsDir():
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, e.name+"/", 0o755
	case mode.IsRegular():
		h.Typeflag, h.Size = tar.TypeReg, e.info.Size()
		if mode&0o111 != 0 {
			h.Mode = 0o755
		}
	default:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.target
	}
	if err := archive.WriteHeader(&h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	f, err := root.Open(e.name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(archive, f, h.Size)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s became shorter while it was being packed; try again", e.name)
	}
	return err
}

// counted counts the bytes that are written.
type counted struct {
	io.Writer
	n int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	return n, err
}
