package tcpstore

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// names are the names of requests in testdata.
var names = map[string]op{
	"set": opSet, "compare-set": opCompareSet, "get": opGet, "add": opAdd, "check": opCheck, "wait": opWait,
	"count": opCountKeys, "watch": opWatch, "delete": opDelete, "append": opAppend, "multi-get": opMultiGet,
	"multi-set": opMultiSet, "cancel": opCancelWait, "ping": opPing, "push": opPush, "pop": opPop,
	"length": opQueueLength, "list": opListKeys, "barrier": opBarrier,
}

// asked returns the request of a line of testdata, as torch would make it.
func asked(t testing.TB, words []string) *request {
	o, known := names[words[0]]
	require.True(t, known, words[0])
	q := &request{op: o}
	for i, word := range words[1:] {
		number := func() {
			n := must.Get(strconv.ParseInt(word, 10, 64))(t)
			q.number = n
		}
		switch {
		case o == opPing, (o == opAdd || o == opBarrier) && i == 1:
			number()
		case o == opMultiSet && i%2 == 1, (o == opSet || o == opCompareSet || o == opAppend || o == opPush) && i > 0:
			q.values = append(q.values, []byte(strings.Trim(word, "-")))
		default:
			q.keys = append(q.keys, word)
		}
	}
	return q
}

// TestStore runs testdata: a line is a client and its request, followed by what every client
// is sent. A hyphen stands for an empty value.
func TestStore(t *testing.T) {
	datadriven.RunTest(t, "testdata/store", func(t *testing.T, d *datadriven.TestData) string {
		s := newStore()
		var b strings.Builder
		for line := range strings.Lines(d.Input) {
			words := strings.Fields(line)
			n := must.Get(strconv.Atoi(words[0]))(t)
			if words[1] == "leaves" {
				s.leave(client(n))
				continue
			}
			answers, err := s.do(client(n), asked(t, words[1:]))
			for _, a := range answers {
				fmt.Fprintf(&b, "%s -> %d: %q\n", strings.TrimSpace(line), a.to, a.data)
			}
			if err != nil {
				fmt.Fprintf(&b, "%s -> error: %v\n", strings.TrimSpace(line), err)
			}
		}
		return b.String()
	})
}

func TestAFullStoreRefusesMore(t *testing.T) {
	s := newStore()
	large := bytes.Repeat([]byte("x"), maxValue)
	for i := range maxSize/maxValue - 1 {
		require.NoError(t, s.set(strconv.Itoa(i), large))
	}
	require.NoError(t, s.set("last", large[:maxValue-8*overhead]))
	for _, words := range []string{"set a " + strings.Repeat("y", 8*overhead), "append a " + strings.Repeat("y", 8*overhead), "push a " + strings.Repeat("y", 8*overhead)} {
		_, err := s.do(1, asked(t, strings.Fields(words)))
		require.ErrorIs(t, err, errFull, words[:8])
	}
	require.Zero(t, s.delete("a"))
	require.Equal(t, int64(1), s.delete("0"))
	require.NoError(t, s.set("a", large))
	for key := range s.keys {
		s.delete(key)
	}
	require.Zero(t, s.size)
}

// Keys that clients wait for or watch take room like others, as long as a client does.
func TestAFullStoreRefusesToWaitForMore(t *testing.T) {
	a, b := strings.Repeat("a", maxKey/2), strings.Repeat("b", maxKey/2)
	for _, requests := range []string{"wait " + a + " " + b, "watch " + a + "|watch " + b, "barrier " + a + " 2"} {
		s := newStore()
		s.size = maxSize - maxKey // the size of other keys
		var err error
		for line := range strings.SplitSeq(requests, "|") {
			require.NoError(t, err, line[:8])
			_, err = s.do(1, asked(t, strings.Fields(line)))
		}
		require.ErrorIs(t, err, errFull, requests[:8])
		s.delete(a)
		require.Equal(t, maxSize-maxKey, s.size, requests[:8])
	}
}

// sent encodes a request as a client of torch with these request numbers does.
func sent(numbers []op, q *request) []byte {
	var b reply
	for i, o := range numbers {
		if o == q.op {
			b = reply{byte(i)}
		}
	}
	switch q.op {
	case opPing:
		return binary.LittleEndian.AppendUint32(b, uint32(q.number))
	case opCheck, opWait, opMultiGet, opMultiSet:
		b = b.number(int64(len(q.keys)))
	}
	for i, key := range q.keys {
		b = b.text([]byte(key))
		if q.op == opMultiSet {
			b = b.text(q.values[i])
		}
	}
	if q.op != opMultiSet {
		for _, value := range q.values {
			b = b.text(value)
		}
	}
	if q.op == opAdd || q.op == opBarrier {
		b = b.number(q.number)
	}
	return b
}

var hello = append([]byte{0}, magic[:]...)

func readerOf(b []byte) *reader {
	return &reader{in: bufio.NewReader(bytes.NewReader(b)), read: new(atomic.Int64)}
}

// Requests of each version of torch are understood.
func TestRequestsOfAllVersions(t *testing.T) {
	lines := map[*op]string{
		&numbers20[0]: "set k v|compare-set k a b|get k|add k -3|check k l|wait k l|count|delete k|append k v|multi-get k l|multi-set k v l w|cancel",
		&numbers21[0]: "set k v|get k|add k 1|delete k|append k v|multi-get k l|multi-set k v l w|cancel",
		&numbers22[0]: "set k v|compare-set k a b|get k|add k 1|check k l|wait k l|count|delete k|append k v|multi-get k l|multi-set k v l w|cancel|ping 7|push q v|pop q|length q|list|barrier k 3",
	}
	for _, numbers := range [][]op{numbers20, numbers21, numbers22} {
		// A client waits for the answer to most requests, so they arrive one by one.
		pieces := make(chan []byte)
		in, out := io.Pipe()
		go func() {
			for piece := range pieces {
				_, _ = out.Write(piece)
			}
		}()
		r := &reader{in: bufio.NewReader(in), read: new(atomic.Int64)}
		for i, line := range strings.Split(lines[&numbers[0]], "|") {
			want := asked(t, strings.Fields(line))
			piece := sent(numbers, want)
			if i == 0 && &numbers[0] == &numbers22[0] {
				piece = append(hello, piece...)
			}
			pieces <- piece
			got, err := r.next()
			require.NoError(t, err, line)
			require.Equal(t, want, got, line)
		}
		close(pieces)
	}
	// Up to torch 2.0, a client watches keys on a connection of its own.
	watch := &request{op: opWatch, keys: []string{"k"}}
	r := readerOf(bytes.Repeat(sent(numbers20, watch), 2))
	for range 2 {
		q := must.Get(r.next())(t)
		require.Equal(t, watch, q)
	}
}

func TestWhatIsNoRequest(t *testing.T) {
	for text, want := range map[string]string{
		"GET / HTTP/1.1\r\n":   errNoRequest.Error(),
		string(hello) + "\x00": errNoRequest.Error(),
		string(hello) + "\x13": errNoRequest.Error(),
		string(hello) + "\x01\xff\xff\xff\xff\xff\xff\xff\xff":                                  "a text of 18446744073709551615 bytes is longer than 8192",
		string(hello) + "\x06\xff\xff\xff\xff\xff\xff\xff\xff":                                  "18446744073709551615 keys are more than the 131072 of one request",
		string(hello) + "\x01\x01\x00\x00\x00\x00\x00\x00\x00k\x00\x00\x00\x00\x01\x00\x00\x00": "a text of 4294967296 bytes is longer than 67108864",
		string(hello) + "\x01\x02":                                                              io.ErrUnexpectedEOF.Error(),
		string(hello[:3]):                                                                       io.ErrUnexpectedEOF.Error(),
		string(hello):                                                                           io.EOF.Error(),
		"":                                                                                      io.EOF.Error(),
	} {
		_, err := readerOf([]byte(text)).next()
		require.EqualError(t, err, want, "%q", text)
	}
}

// The store remains consistent for any input of clients.
func FuzzRequests(f *testing.F) {
	for _, line := range []string{"set k v", "wait k l", "push k v", "barrier k 2", "add k 1", "multi-set a b c d"} {
		f.Add(append(hello, sent(numbers22, asked(f, strings.Fields(line)))...))
	}
	f.Add(sent(numbers20, asked(f, []string{"watch", "k"})))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newStore()
		// Two clients send the same requests, so that each waits for the other and then wakes it.
		for _, c := range []client{1, 2} {
			r := readerOf(b)
			for {
				q, err := r.next()
				if err != nil {
					break
				}
				if _, err := s.do(c, q); err != nil {
					break
				}
			}
		}
		size := 0
		for key, value := range s.keys {
			size += len(key) + len(value) + overhead
		}
		for key, queue := range s.queues {
			size += len(key)
			for _, value := range queue {
				size += len(value) + overhead
			}
		}
		for _, lists := range []map[string][]client{s.waiting, s.watches} {
			for key, list := range lists {
				size += len(key) + overhead + len(list)*entry
			}
		}
		require.Equal(t, size, s.size)
		awaited := map[client]int{}
		for _, list := range s.waiting {
			for _, c := range list {
				awaited[c]++
			}
		}
		require.Equal(t, awaited, s.awaited)
		s.leave(1)
		s.leave(2)
		require.Empty(t, s.waiting)
		require.Empty(t, s.awaited)
		require.Empty(t, s.watches)
	})
}
