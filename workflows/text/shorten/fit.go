package shorten

import "encoding/json"

// ToFit executes steps that drop parts of a value, until its JSON is no longer than most bytes. It
// reports whether that succeeded.
func ToFit(v any, most int, steps ...func()) bool {
	for _, step := range steps {
		if Size(v) <= most {
			return true
		}
		step()
	}
	return Size(v) <= most
}

// Size returns a value's size as JSON, in bytes. Text may grow when it is encoded, because each <
// and > takes six bytes.
func Size(v any) int {
	// The checker objects to the encoder's cache, but the output is deterministic.
	b, err := json.Marshal(v) //workflowcheck:ignore
	if err != nil {
		return 0 // encoding it for the server will return a better error
	}
	return len(b)
}
