package shipped

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// unpack unpacks an archive of the given size into an empty directory. It never writes outside the
// directory even if the archive is hostile.
func unpack(ctx context.Context, r io.Reader, size int64, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	archive := tar.NewReader(r)
	links := map[string]string{}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the archive is damaged: %w", err)
		}
		if size -= h.Size; size < 0 {
			return fmt.Errorf("the archive contains %q, which is larger than the archive", h.Name) // a sparse file
		}
		if err := unpackEntry(root, h, archive); err != nil {
			if of, ok := errors.AsType[*fs.PathError](err); ok && !filepath.IsAbs(of.Path) {
				of.Path = filepath.Join(dir, of.Path)
			}
			return err
		}
		if h.Typeflag == tar.TypeSymlink {
			links[h.Name] = h.Linkname
		}
	}
	// Check links last, when everything along their paths exists.
	for name, target := range links {
		if err := checkLink(root, name, target); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, r) // the digest also covers the rest
	return err
}

func unpackEntry(root *os.Root, h *tar.Header, content io.Reader) error {
	name := strings.TrimSuffix(h.Name, "/")
	if !filepath.IsLocal(name) || path.Clean(name) != name || name == "." {
		return fmt.Errorf("the archive contains %q, which is not a valid name", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.Mkdir(name, 0o755)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
	default:
		return fmt.Errorf("the archive contains %q, which is not a file, a directory or a symbolic link", h.Name)
	}
	mode := fs.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}
