package debugbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// Bundle collects the files to pack.
type Bundle struct {
	Scrubber *Scrubber
	files    []file
	leftOut  []LeftOut
}

type file struct {
	name    string
	content []byte
}

// Manifest is the first file of a bundle.
type Manifest struct {
	Format     string    `json:"format"`
	Clusterrun string    `json:"clusterrun"`
	Made       time.Time `json:"made"`
	Files      []Entry   `json:"files"`
	LeftOut    []LeftOut `json:"left_out"`
}

// Entry is a file of a bundle.
type Entry struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// LeftOut describes something that was left out of a bundle.
type LeftOut struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Format identifies a bundle.
const Format = "clusterrun debug bundle"

// AddJSON adds a document without its secrets.
func (b *Bundle) AddJSON(name string, v any) {
	text, err := b.Scrubber.JSON(v)
	if err != nil {
		b.LeaveOut(name, err)
		return
	}
	b.files = append(b.files, file{name, text})
}

// AddText adds a text without its secrets.
func (b *Bundle) AddText(name, text string) {
	b.files = append(b.files, file{name, []byte(b.Scrubber.Text(text))})
}

// tailSize is the size of the end of a log that is packed, in bytes.
const tailSize = 256 << 10

// AddTail adds the end of a log, in whole lines, if the file exists.
func (b *Bundle) AddTail(name, path string) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		b.LeaveOut(name, err)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		b.LeaveOut(name, err)
		return
	}
	from := max(0, info.Size()-tailSize)
	text, err := io.ReadAll(io.NewSectionReader(f, from, tailSize))
	if err != nil {
		b.LeaveOut(name, err)
		return
	}
	if from > 0 {
		_, text, _ = bytes.Cut(text, []byte("\n")) // the first line may be incomplete
		b.LeaveOut(fmt.Sprintf("%s: all but its last %d KiB", name, tailSize>>10), errors.New("only the end is packed"))
	}
	b.AddText(name, string(text))
}

// LeaveOut records something that is not packed, and why.
func (b *Bundle) LeaveOut(what string, why error) {
	b.leftOut = append(b.leftOut, LeftOut{b.Scrubber.Text(what), b.Scrubber.Text(why.Error())})
}

// Manifest lists the files that are packed, and what was left out.
func (b *Bundle) Manifest(version string, made time.Time) Manifest {
	m := Manifest{Format: Format, Clusterrun: version, Made: made.UTC().Truncate(time.Second), Files: []Entry{}, LeftOut: b.leftOut}
	for _, f := range b.files {
		m.Files = append(m.Files, Entry{f.name, len(f.content)})
	}
	return m
}

// Write writes the bundle with its manifest.
func (b *Bundle) Write(w io.Writer, m Manifest) error {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	zip := gzip.NewWriter(w)
	archive := tar.NewWriter(zip)
	for _, f := range append([]file{{"manifest.json", append(text, '\n')}}, b.files...) {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.content)), Mode: 0o600, ModTime: m.Made}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zip.Close())
}
