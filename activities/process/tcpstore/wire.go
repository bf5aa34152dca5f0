package tcpstore

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
)

const (
	maxKey   = 8 << 10
	maxValue = 64 << 20
	maxKeys  = 128 << 10 // of one request
	// piece is the number of bytes of a text that are read at a time, and that any request may
	// have.
	piece = 64 << 10
	// maxRead is the number of bytes that all requests being read may have together. Beyond it
	// a request larger than a piece is refused. It does not wait for room, because another
	// client may never send the rest of its request.
	maxRead = 256 << 20
)

// magic follows the first byte of clients from torch 2.2 on.
var magic = [...]byte{0xCE, 0xF7, 0x85, 0x3C}

// op is the kind of a request.
type op int

const (
	opSet op = iota
	opCompareSet
	opGet
	opAdd
	opCheck
	opWait
	opCountKeys
	opWatch
	opDelete
	opAppend
	opMultiGet
	opMultiSet
	opCancelWait
	opPing
	opPush
	opPop
	opQueueLength
	opListKeys
	opBarrier
)

// The requests by their numbers, for each version.
var (
	numbers20 = []op{opSet, opCompareSet, opGet, opAdd, opCheck, opWait, opCountKeys, opWatch, opDelete, opAppend, opMultiGet, opMultiSet, opCancelWait}
	numbers21 = []op{opSet, opCompareSet, opGet, opAdd, opCheck, opWait, opCountKeys, opDelete, opAppend, opMultiGet, opMultiSet, opCancelWait}
	numbers22 = []op{
		-1, opSet, opCompareSet, opGet, opAdd, opCheck, opWait, opCountKeys, opDelete, opAppend, opMultiGet, opMultiSet, opCancelWait,
		opPing, opPush, opPop, opQueueLength, opListKeys, opBarrier,
	}
)

// request is one request of a client.
type request struct {
	op     op
	keys   []string
	values [][]byte
	number int64
}

// reader reads the requests of one client.
type reader struct {
	in      *bufio.Reader
	numbers []op          // nil if nothing was read yet
	watches bool          // it is a connection for watching keys
	taken   int64         // bytes of the request that is read or carried out
	read    *atomic.Int64 // bytes of all clients
}

var (
	errNoRequest = errors.New("this is not a request of torch's TCPStore")
	errTooMany   = errors.New("too many clients send large values at once")
)

// next reads one request.
func (r *reader) next() (*request, error) {
	first := r.numbers == nil
	if first {
		if err := r.greeting(); err != nil {
			return nil, err
		}
	}
	number, err := r.in.ReadByte()
	if err != nil {
		return nil, err
	}
	if &r.numbers[0] == &numbers20[0] && r.isOf21(number, first) {
		r.numbers = numbers21
	}
	if int(number) >= len(r.numbers) || r.numbers[number] < 0 {
		return nil, errNoRequest
	}
	q := &request{op: r.numbers[number]}
	r.watches = r.watches || q.op == opWatch
	if err := r.arguments(q); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return q, nil
}

// greeting finds out how the client numbers its requests.
func (r *reader) greeting() error {
	first, err := r.in.Peek(1)
	if err != nil {
		return err
	}
	r.numbers = numbers20
	if first[0] != 0 {
		return nil
	}
	// The magic number cannot be the low half of the length of a key.
	begin, err := r.in.Peek(1 + len(magic))
	if err != nil {
		return io.ErrUnexpectedEOF
	}
	if bytes.Equal(begin[1:], magic[:]) {
		r.numbers = numbers22
		_, err = r.in.Discard(len(begin))
	}
	return err
}

// isOf21 reports whether a number that was just read identifies torch 2.1. Clients send a
// small request in one piece, and wait for the answer before they send the next.
func (r *reader) isOf21(number byte, first bool) bool {
	switch number {
	case 7:
		return !first && !r.watches
	case 8:
		key, err := r.in.Peek(8)
		if err != nil {
			return false
		}
		n := binary.LittleEndian.Uint64(key)
		return n <= maxKey && r.in.Buffered() > 8+int(n)
	case 11:
		return r.in.Buffered() == 0
	}
	return false
}

func (r *reader) arguments(q *request) error {
	switch q.op {
	case opCountKeys, opCancelWait, opListKeys:
		return nil
	case opPing:
		var nonce [4]byte
		_, err := io.ReadFull(r.in, nonce[:])
		q.number = int64(binary.LittleEndian.Uint32(nonce[:]))
		return err
	case opCheck, opWait, opMultiGet, opMultiSet:
		return r.many(q)
	}
	if err := r.key(q); err != nil {
		return err
	}
	switch q.op {
	case opSet, opAppend, opPush:
		return r.value(q)
	case opCompareSet:
		if err := r.value(q); err != nil {
			return err
		}
		return r.value(q)
	case opAdd, opBarrier:
		n, err := r.size()
		q.number = int64(n) //nolint:gosec // the sign is sent as it is
		return err
	}
	return nil
}

// many reads a count and that many keys, for opMultiSet each with a value.
func (r *reader) many(q *request) error {
	n, err := r.size()
	if err != nil {
		return err
	}
	if n > maxKeys {
		return fmt.Errorf("%d keys are more than the %d of one request", n, maxKeys)
	}
	total := 0
	for range n {
		if err := r.key(q); err != nil {
			return err
		}
		total += len(q.keys[len(q.keys)-1])
		if q.op == opMultiSet {
			if err := r.value(q); err != nil {
				return err
			}
			total += len(q.values[len(q.values)-1])
		}
		if total > maxValue {
			return fmt.Errorf("a request has more than %d bytes", maxValue)
		}
	}
	return nil
}

func (r *reader) key(q *request) error {
	b, err := r.text(maxKey)
	q.keys = append(q.keys, string(b))
	return err
}

func (r *reader) value(q *request) error {
	b, err := r.text(maxValue)
	q.values = append(q.values, b)
	return err
}

// take counts bytes of a request that are about to be read.
func (r *reader) take(n int) error {
	r.taken += int64(n)
	if r.read.Add(int64(n)) > maxRead && r.taken > piece {
		return errTooMany
	}
	return nil
}

// release is called when a request has been carried out or refused.
func (r *reader) release() {
	r.read.Add(-r.taken)
	r.taken = 0
}

// text reads a length and that many bytes. It allocates memory only for bytes that have
// arrived.
func (r *reader) text(most uint64) ([]byte, error) {
	n, err := r.size()
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, fmt.Errorf("a text of %d bytes is longer than %d", n, most)
	}
	var b []byte
	for left := int(n); left > 0; { //nolint:gosec // at most most
		begin, some := len(b), min(left, piece)
		if err := r.take(some); err != nil {
			return nil, err
		}
		b = slices.Grow(b, some)[:begin+some]
		if _, err := io.ReadFull(r.in, b[begin:]); err != nil {
			return nil, err
		}
		left -= some
	}
	return b, nil
}

func (r *reader) size() (uint64, error) {
	var b [8]byte
	_, err := io.ReadFull(r.in, b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

// reply is a message to a client.
type reply []byte

func (r reply) byte(b byte) reply { return append(r, b) }

func (r reply) number(n int64) reply {
	return binary.LittleEndian.AppendUint64(r, uint64(n)) //nolint:gosec // the sign is sent as it is
}

func (r reply) text(b []byte) reply { return append(r.number(int64(len(b))), b...) }

// The answers to clients that wait, that check for keys, and that watch one.
const (
	stopWaiting   = 0
	waitCancelled = 1

	ready    = 0
	notReady = 1

	keyUpdated  = 0
	keyCreated  = 1
	keyDeleted  = 2
	keyWatched  = 3
	keyAppended = 4
)
