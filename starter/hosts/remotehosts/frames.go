package remotehosts

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// mark starts each frame that the program on a host writes. Its first byte occurs in it only
	// once.
	mark = "\x00clusterrun:"
	// maxFrame is how many bytes a pipe takes in one piece, so that no foreign text gets into a
	// frame.
	maxFrame = 4096
	// headSize is the size of a mark and the content length that follows.
	headSize = len(mark) + 2
)

// frameWriter writes frames.
type frameWriter struct{ io.Writer }

// Write writes at least one frame.
func (w frameWriter) Write(b []byte) (n int, err error) {
	for {
		part := b[n:min(len(b), n+maxFrame-headSize)]
		frame := binary.BigEndian.AppendUint16([]byte(mark), uint16(len(part)))
		if _, err = w.Writer.Write(append(frame, part...)); err != nil {
			return n, err
		}
		if n += len(part); n == len(b) {
			return n, nil
		}
	}
}

// frameReader reads the content of frames, and skips the text between them, which the host's
// login shell and its children write to the same pipe.
type frameReader struct {
	in      *bufio.Reader
	left    int // remaining content of a frame
	skipped tail
}

func (r *frameReader) Read(b []byte) (int, error) {
	for r.left == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n, err := r.in.Read(b[:min(len(b), r.left)])
	r.left -= n
	return n, err
}

// next skips text up to a frame.
func (r *frameReader) next() error {
	for {
		text, err := r.in.ReadSlice(mark[0])
		_, _ = r.skipped.Write(bytes.TrimSuffix(text, []byte(mark[:1])))
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return err
		}
		head, err := r.in.Peek(headSize - 1)
		if err != nil {
			return err
		}
		if string(head[:len(mark)-1]) == mark[1:] {
			r.left = int(binary.BigEndian.Uint16(head[len(mark)-1:]))
			_, err = r.in.Discard(len(head))
			return err
		}
	}
}

// afterText returns err with the last foreign text, which may contain its reason.
func (r *frameReader) afterText(err error) error {
	text := strings.Join(r.skipped.lines(), "; ")
	if text == "" {
		return err
	}
	return fmt.Errorf("%w; its shell printed %.200q to stdout", err, text)
}
