package account

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/clusterrun/clusterrun/activities/filelock"
	"github.com/clusterrun/clusterrun/activities/tasklog"
)

// Limits of an export, beside that of its size: what is read into memory, and how many files
// there are.
const (
	maxManifest = 64 << 20
	maxAccount  = 32 << 20
	maxFiles    = 500_000
	maxID       = 1000
	// maxRest is what may follow the last file: the padding of tar(1).
	maxRest = 1 << 20
)

// ErrRefused is the error of a file that is not imported, whatever is done about it here.
var ErrRefused = errors.New("it is no export that can be imported")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}

// Import unpacks an export below a directory, in the place of an earlier one of the same run.
// One with more than limit bytes is refused, as is anything that [Pack] would not write, and
// then nothing is written, as where ctx ends before all is.
func Import(ctx context.Context, file io.ReadSeeker, parent string, limit int64) (*Manifest, error) {
	m, err := unpack(ctx, file, parent, limit)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err() // whatever the file seemed to be then
	}
	return m, err
}

func unpack(ctx context.Context, file io.ReadSeeker, parent string, limit int64) (*Manifest, error) {
	export := untilDone{ctx, file}
	m, err := read(export, limit, func(_ string, r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	tmp, remove, err := filelock.TempDir(parent, unfinished)
	if err != nil {
		return nil, err
	}
	defer remove()
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	const unpacked = "run"
	again, err := read(export, limit, func(name string, r io.Reader) error {
		name = path.Join(unpacked, name)
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return nil, err
	}
	if again.RunID != m.RunID || again.ExecutionID != m.ExecutionID {
		return nil, refused("it is being changed")
	}
	dir := tasklog.RunDir(parent, m.RunID, m.ExecutionID)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	if err := replace(dir, filepath.Join(tmp, unpacked), filepath.Join(tmp, "earlier")); err != nil {
		return nil, err
	}
	return m, nil
}

// untilDone fails to read once its context has ended.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}

// replace puts a directory in the place of another, which is set aside. Where it cannot, the
// other one is back in its place.
func replace(dir, by, aside string) error {
	earlier := os.Rename(dir, aside)
	if earlier != nil && !errors.Is(earlier, fs.ErrNotExist) {
		return earlier
	}
	err := os.Rename(by, dir)
	if err != nil && earlier == nil {
		err = errors.Join(err, os.Rename(aside, dir))
	}
	return err
}

// unfinished begins the names of what is being unpacked.
const unfinished = ".new-"

// read reads an export to its end, and hands each file to do once it holds against the
// manifest. The manifest and the account are read into memory before.
func read(file io.Reader, limit int64, do func(name string, r io.Reader) error) (*Manifest, error) {
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil, refused("not gzip (%w)", err)
	}
	archive := tar.NewReader(zip)
	m := &Manifest{}
	text, err := whole(archive, Entry{manifestFile, -1}, maxManifest)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, refused("its manifest is not JSON (%w)", err)
	}
	if err := m.check(limit); err != nil {
		return nil, err
	}
	if err := do(manifestFile, bytes.NewReader(text)); err != nil {
		return nil, err
	}
	for _, e := range m.Files {
		if e.Name == accountFile {
			if text, err = whole(archive, e, maxAccount); err != nil {
				return nil, err
			}
			if err := m.holds(text); err != nil {
				return nil, err
			}
			if err := do(e.Name, bytes.NewReader(text)); err != nil {
				return nil, err
			}
			continue
		}
		if err := next(archive, e); err != nil {
			return nil, err
		}
		if err := do(e.Name, io.LimitReader(archive, e.Size)); err != nil {
			return nil, broken(err)
		}
	}
	if h, err := archive.Next(); err == nil {
		return nil, refused("%q is not in its manifest", h.Name)
	} else if !errors.Is(err, io.EOF) {
		return nil, broken(err)
	}
	// To its end, where the checksum is.
	rest, err := io.ReadAll(io.LimitReader(zip, maxRest+1))
	switch {
	case err != nil:
		return nil, broken(err)
	case len(rest) > maxRest:
		return nil, refused("more than %d bytes follow the last file", maxRest)
	case slices.ContainsFunc(rest, func(b byte) bool { return b != 0 }):
		return nil, refused("something follows the last file, such as another export")
	}
	return m, nil
}

// broken says what is wrong with a file that cannot be read to its end.
func broken(err error) error {
	var own *fs.PathError
	switch {
	case errors.As(err, &own), errors.Is(err, ErrRefused):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return refused("it is truncated")
	}
	return refused("it is damaged (%w)", err)
}

// next goes to the next file, which has to be that one; of what size is not asked where it is
// negative.
func next(archive *tar.Reader, want Entry) error {
	h, err := archive.Next()
	switch {
	case err != nil:
		return broken(err)
	case h.Typeflag != tar.TypeReg:
		return refused("%q is not a regular file", h.Name)
	case h.Name != want.Name:
		return refused("%q is where %q should be", h.Name, want.Name)
	case want.Size >= 0 && h.Size != want.Size:
		return refused("%q has %d bytes, and %d in the manifest", h.Name, h.Size, want.Size)
	}
	return nil
}

// whole reads the next file into memory.
func whole(archive *tar.Reader, want Entry, limit int64) ([]byte, error) {
	if err := next(archive, want); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(archive, limit+1))
	switch {
	case err != nil:
		return nil, broken(err)
	case int64(len(text)) > limit:
		return nil, refused("%q has more than %d bytes", want.Name, limit)
	}
	return text, nil
}

// check holds a manifest against what Pack writes.
func (m *Manifest) check(limit int64) error {
	switch {
	case m.Format != Format:
		return refused("its format is %q, not %q", m.Format, Format)
	case m.Version != formatVersion:
		return refused("it is of version %d, written by clusterrun %s, and this clusterrun reads version %d; import it with that one", m.Version, m.Clusterrun, formatVersion)
	case !isID(m.RunID) || !isID(m.ExecutionID):
		return refused("%q with the execution %q is no run", m.RunID, m.ExecutionID)
	case len(m.Files) > maxFiles:
		return refused("it has %d files; at most %d are read", len(m.Files), maxFiles)
	case len(m.Files) < 2 || m.Files[0].Name != accountFile || m.Files[1].Name != historyFile:
		return refused("its manifest does not begin with %s and %s", accountFile, historyFile)
	}
	total := int64(0)
	seen := map[string]bool{}
	for i, e := range m.Files {
		switch {
		case i > 1 && !logName().MatchString(e.Name):
			return refused("%q is no name of a file of an export", e.Name)
		case seen[e.Name]:
			return refused("%q is there twice", e.Name)
		case e.Size < 0:
			return refused("%q has a negative size", e.Name)
		case e.Size > limit-total:
			return refused("it has more than %d bytes, unpacked; a higher --limit takes it", limit)
		}
		seen[e.Name] = true
		total += e.Size
	}
	return nil
}

func isID(id string) bool {
	for _, r := range id {
		if r < ' ' || r > '~' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

// holds reports what is wrong with an account of which this is the manifest.
func (m *Manifest) holds(text []byte) error {
	a, err := parse(text)
	switch {
	case err != nil:
		return refused("its account cannot be read (%w)", err)
	case a.Status == nil || a.Status.RunID != m.RunID || a.Status.ExecutionID != m.ExecutionID:
		return refused("its account is of another run")
	case len(a.Tasks) > len(a.Status.Tasks):
		return refused("its account has %d tasks, and its status %d", len(a.Tasks), len(a.Status.Tasks))
	case slices.ContainsFunc(a.Tasks, func(t Task) bool { return t.Name == "" }):
		return refused("its account has a task without a name")
	}
	return nil
}
