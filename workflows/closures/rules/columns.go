package rules

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Columns of a snapshot. What is alike lies together, so that a hundred thousand
// closures that differ in little more than their ID take little room.
const (
	columnID = iota // less the one before
	columnState
	columnFlags // see flags
	columnAttempt
	columnFunction
	columnOptions // from 1; 0: none
	columnKey
	columnArgsLen
	columnArgs
	columnKwargsLen
	columnKwargs
	columnResources // how many, then their IDs
	// columnKeys has all keys, those of closures that have ended, too: how much of the key
	// before is the beginning of this one, the rest, and twice the ID less the one before;
	// one more where the closure has failed.
	columnKeys
	columnCount
)

// What is in columnState.
const (
	stateQueued uint64 = iota
	stateEntering
	stateHeld // and the number of the host
)

// writer fills the columns, and the tables they refer to.
type writer struct {
	saved   *saved
	seen    *functions
	columns [columnCount][]byte
	last    uint64

	functions, options, sets map[string]int
	owners                   map[owner]int
}

func (w *writer) owner(o owner) int {
	if at, known := w.owners[o]; known {
		return at
	}
	if w.owners == nil {
		w.owners = map[owner]int{}
	}
	at := len(w.owners)
	w.owners[o] = at
	w.saved.Owners = append(w.saved.Owners, savedOwner{o.client, o.task, o.process})
	return at
}

func (w *writer) number(column int, n uint64) {
	w.columns[column] = binary.AppendUvarint(w.columns[column], n)
}

func (w *writer) text(column int, text string) {
	w.number(column, uint64(len(text)))
	w.columns[column] = append(w.columns[column], text...)
}

func (w *writer) item(it *item, state uint64) {
	w.number(columnID, it.ID-w.last)
	w.last = it.ID
	w.number(columnState, state)
	w.number(columnFlags, it.flags())
	w.number(columnAttempt, uint64(it.Attempt))
	w.number(columnFunction, uint64(inTable(&w.functions, &w.saved.Functions, it.Function, it.Function)))
	w.number(columnOptions, w.optionsOf(it))
	w.text(columnKey, it.key())
	w.number(columnArgsLen, uint64(len(it.Args)))
	w.columns[columnArgs] = append(w.columns[columnArgs], it.Args...)
	w.number(columnKwargsLen, uint64(len(it.Kwargs)))
	w.columns[columnKwargs] = append(w.columns[columnKwargs], it.Kwargs...)
	w.number(columnResources, uint64(len(it.Resources)))
	for _, id := range it.Resources {
		w.number(columnResources, id)
	}
	if it.losses > 0 {
		w.saved.Losses = append(w.saved.Losses, savedLosses{it.ID, it.losses, it.lostOn})
	}
}

// flags are whether the item was told, in the lowest bit, and above it from how many
// leases it came back.
func (it *item) flags() uint64 {
	flags := uint64(it.returns) << 1
	if it.told {
		flags++
	}
	return flags
}

func (it *item) setFlags(flags uint64) {
	it.told, it.returns = flags&1 == 1, int(flags>>1&3)
}

func (w *writer) keys(k *keys) {
	var before listedKey
	for _, l := range k.known() {
		shared := 0
		for shared < min(len(l.key), len(before.key)) && l.key[shared] == before.key[shared] {
			shared++
		}
		w.number(columnKeys, uint64(shared))
		w.text(columnKeys, l.key[shared:])
		step := (l.id - before.id) << 1
		if k.ids[l.key].failed {
			step++
		}
		w.number(columnKeys, step)
		before = l
	}
}

// optionsOf returns the number of the item's options, without the key.
func (w *writer) optionsOf(it *item) uint64 {
	if it.Options == nil {
		return 0
	}
	o := *it.Options
	o.Key = ""
	text, err := json.Marshal(o)
	if err != nil {
		return 0 // they are numbers and texts
	}
	return 1 + uint64(inTable(&w.options, &w.saved.Options, string(text), &o))
}

func (w *writer) host(h *host) savedHost {
	s := savedHost{
		Name: h.name, Queue: h.queue, Seq: h.seq, Window: h.window, Doubted: h.doubted,
		Broker: h.broker, Former: h.former, More: h.more,
		Given: [2]uint64{h.given.first, h.given.last},
	}
	gone := h.unheard()
	s.Gone = [2]uint64{gone.first, gone.last}
	for _, t := range h.serving {
		set := w.seen.set(t.Functions)
		s.Tasks = append(s.Tasks, savedTask{t.Task, t.Process, t.Slots, inTable(&w.sets, &w.saved.Sets, string(set), set)})
	}
	return s
}

// inTable is the place of a value in a table of different ones.
func inTable[V any](places *map[string]int, table *[]V, key string, value V) int {
	at, known := (*places)[key]
	if !known {
		if *places == nil {
			*places = map[string]int{}
		}
		at = len(*table)
		(*places)[key] = at
		*table = append(*table, value)
	}
	return at
}

// maxSnapshot bounds what a snapshot unpacks to. It is far more than a queue can
// have, and little enough for a machine.
const maxSnapshot = 64 << 20

// compress packs the parts of a snapshot. The form has a checksum of its own.
func compress(head []byte, columns [columnCount][]byte) ([]byte, error) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.DefaultCompression)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, part := range append([][]byte{head}, columns[:]...) {
		size += len(part)
		if size > maxSnapshot/2 {
			return nil, fmt.Errorf("closures: the queue is too large for a snapshot")
		}
		if _, err := z.Write(binary.AppendUvarint(nil, uint64(len(part)))); err != nil {
			return nil, err
		}
		if _, err := z.Write(part); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// decompress is the inverse of compress.
func decompress(packed []byte) (head []byte, columns [columnCount]column, err error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, columns, err
	}
	all, err := io.ReadAll(io.LimitReader(z, maxSnapshot+1))
	if err != nil {
		return nil, columns, err
	}
	if len(all) > maxSnapshot {
		return nil, columns, fmt.Errorf("it unpacks to more than %d bytes", maxSnapshot)
	}
	rest := column{bytes: all}
	head = rest.take(rest.number())
	for i := range columns {
		columns[i].bytes = rest.take(rest.number())
	}
	if rest.short || len(rest.bytes) > 0 {
		return nil, columns, fmt.Errorf("its parts are not as long as they say")
	}
	return head, columns, nil
}

// column is read from its start.
type column struct {
	bytes []byte
	short bool // it had less than was asked of it
}

func (c *column) number() uint64 {
	n, size := binary.Uvarint(c.bytes)
	if size <= 0 {
		c.short, c.bytes = true, nil
		return 0
	}
	c.bytes = c.bytes[size:]
	return n
}

func (c *column) take(n uint64) []byte {
	if n > uint64(len(c.bytes)) {
		c.short, c.bytes = true, nil
		return nil
	}
	taken := c.bytes[:n:n]
	c.bytes = c.bytes[n:]
	return taken
}

func readOptions(table []*closure.Options, at uint64, key string) (*closure.Options, bool) {
	switch {
	case at == 0:
		return nil, key == ""
	case at > uint64(len(table)) || table[at-1] == nil:
		return nil, false
	case key == "":
		return table[at-1], true
	}
	o := *table[at-1]
	o.Key = key
	return &o, true
}

// resources writes the resources that are in use. A waiting request is not part of the
// snapshot, and a released resource that only such requests use is dropped.
func (w *writer) resources(all *resources, open []*item) (dropped []uint64) {
	used := map[uint64]bool{}
	for _, it := range open {
		for _, id := range it.Resources {
			used[id] = true
		}
	}
	for _, r := range all.list {
		if r.released && !used[r.ID] {
			dropped = append(dropped, r.ID)
			continue
		}
		w.saved.Resources = append(w.saved.Resources, savedResource{r.Resource, w.owner(r.owner), r.released})
	}
	return dropped
}
