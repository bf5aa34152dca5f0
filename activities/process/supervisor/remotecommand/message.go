package remotecommand

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Start is the first message of a client.
type Start struct {
	// Secret is the one whose hash the run has allowed.
	Secret string `json:"secret"`
	// Command is the program with its arguments. If it is empty, it is the user's shell.
	Command []string `json:"command,omitempty"`
	// Terminal is the size of the client's terminal, or nil for pipes. Term is the TERM of the
	// client.
	Terminal *Size  `json:"terminal,omitempty"`
	Term     string `json:"term,omitempty"`
	// Signature covers the command.
	Signature *spec.Signature `json:"signature,omitempty"`
}

// Size is the size of a terminal, in characters.
type Size struct {
	Rows    int `json:"rows"`
	Columns int `json:"columns"`
}

// End says how a command has ended.
type End struct {
	// Code is the exit code, or 128+N if signal N ended the command.
	Code int `json:"code"`
	// Why says why the host ended the command, or did not start it. It is empty if the command
	// ended by itself.
	Why string `json:"why,omitempty"`
}

// message goes from one end to the other. Only one of the fields is set, with Length and
// Stream as one.
type message struct {
	Start *Start `json:"start,omitempty"`
	// Started tells that the command is running.
	Started bool `json:"started,omitempty"`
	// Stream and Length announce bytes of a stream.
	Stream stream `json:"stream,omitempty"`
	Length int    `json:"length,omitempty"`
	// EOF is the end of stdin.
	EOF bool `json:"eof,omitempty"`
	// Taken is the number of further bytes of stdin that the command has taken.
	Taken int `json:"taken,omitempty"`
	// Size is a new size of the terminal, and Signal the name of a signal for the command.
	Size   *Size  `json:"size,omitempty"`
	Signal string `json:"signal,omitempty"`
	End    *End   `json:"end,omitempty"`
}

type stream string

const (
	stdin  stream = "stdin"
	stdout stream = "stdout"
	stderr stream = "stderr"
)

const (
	// maxPiece bounds the bytes of a message, and maxLine its line: a command line may be long.
	maxPiece, maxLine = 64 << 10, 4 << 20
	// window bounds the bytes of stdin that the command has not taken.
	window = 256 << 10
)

// wire sends and receives messages.
type wire struct {
	in     *bufio.Reader
	mu     sync.Mutex // guards out and closed
	out    io.Writer
	closed bool // the end was sent: the connection must not be used
}

func newWire(in io.Reader, out io.Writer) *wire {
	return &wire{in: bufio.NewReaderSize(in, maxPiece), out: out}
}

func (w *wire) send(m message, data []byte) error {
	m.Length = len(data)
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return net.ErrClosed
	}
	w.closed = m.End != nil
	_, err = w.out.Write(append(append(line, '\n'), data...))
	return err
}

// receive returns the next message, with data that is valid until the next call.
func (w *wire) receive(buf []byte) (m message, data []byte, err error) {
	line, err := ReadLine(w.in, maxLine)
	if err != nil {
		return m, nil, err
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, nil, fmt.Errorf("not a message: %w", err)
	}
	if m.Length < 0 || m.Length > len(buf) {
		return m, nil, fmt.Errorf("a message of %d bytes", m.Length)
	}
	_, err = io.ReadFull(w.in, buf[:m.Length])
	return m, buf[:m.Length], err
}

// ReadLine reads a line of at most that many bytes.
func ReadLine(in *bufio.Reader, most int) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > most:
			return nil, fmt.Errorf("it sends a line of more than %d bytes", most)
		case err == nil || !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}
