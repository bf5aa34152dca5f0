package closure

import (
	"bytes"
	"encoding/json"
)

// Escaped returns JSON as it is stored in a history, in which some characters take six bytes, so
// that its size is known before it is sent.
func Escaped(raw json.RawMessage) json.RawMessage {
	if !bytes.ContainsAny(raw, "<>&") && !bytes.Contains(raw, lineSeparators) {
		return raw
	}
	var out bytes.Buffer
	json.HTMLEscape(&out, raw)
	return out.Bytes()
}

// lineSeparators is the common start of U+2028 and U+2029.
var lineSeparators = []byte("\xe2\x80")
