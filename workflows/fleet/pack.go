package fleet

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
)

// A state with more than packAbove hosts and runs is packed, because a server terminates a workflow
// that passes more than 2 MiB to its next execution. maxUnpacked limits the size of an unpacked
// state, in bytes.
const packAbove, maxUnpacked = 200, 128 << 20

// Pack returns the state, compressed if it is large.
func (s State) Pack() (State, error) {
	if len(s.Hosts)+len(s.Runs) <= packAbove {
		return s, nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return s, err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(text) // writing to a buffer never fails
	_ = z.Close()
	return State{Packed: packed.Bytes()}, nil
}

// Unpack is the inverse of [State.Pack].
func (s State) Unpack() (State, error) {
	if s.Packed == nil {
		return s, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(s.Packed))
	if err != nil {
		return s, err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxUnpacked)) // reading to the end verifies the checksum
	if err != nil {
		return s, err
	}
	var all State
	err = json.Unmarshal(text, &all)
	return all, err
}
