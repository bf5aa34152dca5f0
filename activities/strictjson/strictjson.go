// Package strictjson decodes one JSON value with known fields only: who has misspelt a field
// would not find out otherwise that it does nothing.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// ErrMore is returned where something follows the value.
var ErrMore = errors.New("something follows the JSON object")

// Decode decodes the value that b is into v. The errors are those of [json.Decoder], and
// [ErrMore].
func Decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return ErrMore
	}
	return nil
}
