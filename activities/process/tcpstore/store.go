package tcpstore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxSize is the number of bytes that a store holds, including overhead for each key and
	// each value of a queue, and the keys that clients wait for or watch.
	maxSize  = 256 << 20
	overhead = 64
	entry    = 16 // a client in the list of a key

	maxWatches = 128 << 10
)

// client names a client of a store.
type client int

// answer is something to send to a client. Several clients may get the same slice.
type answer struct {
	to   client
	data reply
}

// store has the keys of one store and the clients that wait for them. It is pure: do carries
// out one request and returns what to send to whom. A missing key reads as empty; clients
// wait for a key before they read it.
type store struct {
	keys   map[string][]byte
	queues map[string][][]byte
	size   int

	// waiting has, by key, the clients that wait for it, and awaited how many keys each of
	// them still waits for.
	waiting map[string][]client
	awaited map[client]int
	watches map[string][]client

	answers []answer // to the request that is being carried out
}

func newStore() *store {
	return &store{
		keys: map[string][]byte{}, queues: map[string][][]byte{},
		waiting: map[string][]client{}, awaited: map[client]int{}, watches: map[string][]client{},
	}
}

var errFull = fmt.Errorf("the store would exceed %d MiB", maxSize>>20)

// do carries out a request. After an error the client must be disconnected.
func (s *store) do(c client, q *request) ([]answer, error) {
	s.answers = nil
	err := s.carryOut(c, q)
	return s.answers, err
}

func (s *store) carryOut(c client, q *request) error {
	var r reply
	switch q.op {
	case opSet:
		return s.set(q.keys[0], q.values[0])
	case opMultiSet:
		for i, key := range q.keys {
			if err := s.set(key, q.values[i]); err != nil {
				return err
			}
		}
		return nil
	case opAppend:
		return s.append(q.keys[0], q.values[0])
	case opPush:
		return s.push(q.keys[0], q.values[0])
	case opWait:
		return s.wait(c, q.keys)
	case opBarrier:
		return s.barrier(c, q.keys[0], q.number)
	case opCompareSet:
		value, err := s.compareSet(q.keys[0], q.values[0], q.values[1])
		if err != nil {
			return err
		}
		r = r.text(value)
	case opGet:
		r = r.text(s.keys[q.keys[0]])
	case opMultiGet:
		total := 0
		for _, key := range q.keys {
			if total += len(s.keys[key]); total > maxSize {
				return errFull
			}
			r = r.text(s.keys[key])
		}
		if r == nil {
			return nil
		}
	case opAdd:
		n, err := s.add(q.keys[0], q.number)
		if err != nil {
			return err
		}
		r = r.number(n)
	case opCheck:
		if slices.ContainsFunc(q.keys, func(key string) bool { return !s.has(key) }) {
			r = r.byte(notReady)
		} else {
			r = r.byte(ready)
		}
	case opCountKeys:
		r = r.number(int64(len(s.keys)))
	case opListKeys:
		r = r.number(int64(len(s.keys)))
		for _, key := range slices.Sorted(maps.Keys(s.keys)) {
			r = r.text([]byte(key))
		}
	case opDelete:
		r = r.number(s.delete(q.keys[0]))
	case opWatch:
		if len(s.watches) >= maxWatches {
			return errFull
		}
		if list := s.watches[q.keys[0]]; !slices.Contains(list, c) {
			s.list(s.watches, q.keys[0], append(list, c))
		}
		if err := s.fits(c); err != nil {
			return err
		}
		r = r.byte(keyWatched)
	case opCancelWait:
		s.forgetWait(c)
		r = r.byte(waitCancelled)
	case opPing:
		n := uint32(q.number) //nolint:gosec // it was read as 32 bits
		r = reply{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}
	case opPop:
		r = s.pop(q.keys[0])
	case opQueueLength:
		r = r.number(int64(len(s.queues[q.keys[0]])))
	}
	s.answer(c, r)
	return nil
}

func (s *store) answer(to client, data reply) {
	s.answers = append(s.answers, answer{to, data})
}

// leave removes a client that is gone.
func (s *store) leave(c client) {
	s.forgetWait(c)
	s.unlist(s.watches, c)
}

func (s *store) forgetWait(c client) {
	if _, waits := s.awaited[c]; waits {
		delete(s.awaited, c)
		s.unlist(s.waiting, c)
	}
}

// fits returns an error if the store has no room for the keys that a client has just begun to
// wait for or to watch. It then removes the client's waits and watches.
func (s *store) fits(c client) error {
	if s.size > maxSize {
		s.leave(c)
		return errFull
	}
	return nil
}

// list sets the list of a key.
func (s *store) list(lists map[string][]client, key string, list []client) {
	s.size += listSize(key, list) - listSize(key, lists[key])
	if len(list) == 0 {
		delete(lists, key)
	} else {
		lists[key] = list
	}
}

func listSize(key string, list []client) int {
	if len(list) == 0 {
		return 0
	}
	return len(key) + overhead + len(list)*entry
}

// unlist removes a client from all lists.
func (s *store) unlist(lists map[string][]client, c client) {
	for key, list := range lists {
		if i := slices.Index(list, c); i >= 0 {
			s.list(lists, key, slices.Concat(list[:i], list[i+1:]))
		}
	}
}

// has reports whether a key exists, so that a client need not wait for it.
func (s *store) has(key string) bool {
	_, ok := s.keys[key]
	return ok || len(s.queues[key]) > 0
}

// put changes a key, notifies the clients that watch it, and wakes those that wait for it.
func (s *store) put(key string, value []byte) error {
	old, known := s.keys[key]
	grows := len(value) - len(old)
	if !known {
		grows += len(key) + overhead
	}
	if s.size+grows > maxSize {
		return errFull
	}
	s.size += grows
	s.keys[key] = value
	for _, c := range s.take(key) {
		s.wake(c)
	}
	return nil
}

func (s *store) set(key string, value []byte) error {
	old, known := s.keys[key]
	if err := s.put(key, value); err != nil {
		return err
	}
	s.tell(key, changeOf(known), old, value)
	return nil
}

func changeOf(known bool) byte {
	if known {
		return keyUpdated
	}
	return keyCreated
}

// compareSet sets a key that has the expected value, and returns the value that it has then.
// For a key that does not exist, torch returns the expected value.
func (s *store) compareSet(key string, expected, value []byte) ([]byte, error) {
	old, known := s.keys[key]
	switch {
	case !known && len(expected) > 0:
		return expected, nil
	case string(old) != string(expected):
		return old, nil
	}
	return value, s.set(key, value)
}

var errNoNumber = errors.New("the value of the key is not a number")

// add adds to the number in a key.
func (s *store) add(key string, n int64) (int64, error) {
	if old, known := s.keys[key]; known {
		before, err := numberOf(string(old))
		if err != nil {
			return 0, err
		}
		n += before
	}
	return n, s.set(key, strconv.AppendInt(nil, n, 10))
}

// numberOf returns the number at the beginning of a value, as std::stoll does.
func numberOf(value string) (int64, error) {
	value = strings.TrimLeft(value, " \t\n\v\f\r")
	end := strings.IndexFunc(value, func(r rune) bool { return r < '0' || r > '9' })
	if end == 0 && (value[0] == '-' || value[0] == '+') {
		end = strings.IndexFunc(value[1:], func(r rune) bool { return r < '0' || r > '9' })
		if end >= 0 {
			end++
		}
	}
	if end >= 0 {
		value = value[:end]
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, errNoNumber
	}
	return n, nil
}

func (s *store) append(key string, value []byte) error {
	old, known := s.keys[key]
	if err := s.put(key, slices.Concat(old, value)); err != nil {
		return err
	}
	change := byte(keyAppended)
	if !known {
		change = keyCreated
	}
	s.tell(key, change, nil, value)
	return nil
}

func (s *store) delete(key string) int64 {
	old, known := s.keys[key]
	if !known {
		return 0
	}
	s.size -= len(key) + len(old) + overhead
	delete(s.keys, key)
	s.tell(key, keyDeleted, old, nil)
	return 1
}

// tell notifies the clients that watch a key of a change.
func (s *store) tell(key string, change byte, old, value []byte) {
	watchers := s.watches[key]
	if len(watchers) == 0 {
		return
	}
	news := make(reply, 0, 1+3*8+len(key)+len(old)+len(value))
	news = news.byte(change).text([]byte(key)).text(old).text(value)
	for _, c := range watchers {
		s.answer(c, news)
	}
}

func (s *store) wait(c client, keys []string) error {
	s.forgetWait(c)
	for _, key := range keys {
		list := s.waiting[key]
		if s.has(key) || len(list) > 0 && list[len(list)-1] == c {
			continue
		}
		s.list(s.waiting, key, append(list, c))
		s.awaited[c]++
	}
	if err := s.fits(c); err != nil {
		return err
	}
	if s.awaited[c] == 0 {
		delete(s.awaited, c)
		s.answer(c, reply{stopWaiting})
	}
	return nil
}

// take returns the clients that wait for a key, and clears the list.
func (s *store) take(key string) []client {
	list := s.waiting[key]
	s.list(s.waiting, key, nil)
	return list
}

// wake counts off one key that a client waits for, and reports whether that was the last.
func (s *store) wake(c client) bool {
	if s.awaited[c]--; s.awaited[c] > 0 {
		return false
	}
	delete(s.awaited, c)
	s.answer(c, reply{stopWaiting})
	return true
}

// barrier counts arrivals in a key. The last one releases the others.
func (s *store) barrier(c client, key string, size int64) error {
	arrived := int64(1)
	if old, known := s.keys[key]; known {
		before, err := numberOf(string(old))
		if err != nil {
			return err
		}
		arrived += before
	}
	s.forgetWait(c)
	others := s.take(key)
	if err := s.put(key, strconv.AppendInt(nil, arrived, 10)); err != nil {
		s.list(s.waiting, key, others)
		return err
	}
	if arrived < size {
		s.list(s.waiting, key, append(others, c))
		s.awaited[c] = 1
		return s.fits(c)
	}
	for _, other := range others {
		s.wake(other)
	}
	s.answer(c, reply{stopWaiting})
	return nil
}

// push adds to a queue and wakes one of the clients that wait for it.
func (s *store) push(key string, value []byte) error {
	grows := len(value) + overhead
	if _, known := s.queues[key]; !known {
		grows += len(key)
	}
	if s.size+grows > maxSize {
		return errFull
	}
	s.size += grows
	s.queues[key] = append(s.queues[key], value)
	list := s.take(key)
	for i, c := range list {
		if s.wake(c) {
			s.list(s.waiting, key, list[i+1:])
			break
		}
	}
	return nil
}

// pop returns the number of values in a queue, and removes and returns the first of them.
func (s *store) pop(key string) reply {
	queue := s.queues[key]
	r := reply{}.number(int64(len(queue)))
	if len(queue) == 0 {
		return r
	}
	r = r.text(queue[0])
	s.size -= len(queue[0]) + overhead
	s.queues[key] = queue[1:]
	if len(queue) == 1 {
		s.size -= len(key)
		delete(s.queues, key)
	}
	return r
}
