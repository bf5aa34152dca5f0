package shorten

import "encoding/json"

// ToFit carries out steps that leave out parts of a value, one after the other, until the value has
// at most so many bytes as JSON. It reports whether it has.
func ToFit(v any, most int, steps ...func()) bool {
	for _, step := range steps {
		if Size(v) <= most {
			return true
		}
		step()
	}
	return Size(v) <= most
}

// Size returns the size of a value as JSON, in bytes. A text can be larger there than by itself:
// every < and > takes six bytes.
func Size(v any) int {
	// The encoder caches, so workflowcheck doubts it; its output is deterministic.
	b, err := json.Marshal(v) //workflowcheck:ignore
	if err != nil {
		return 0 // encoding it for the server will fail with a better error
	}
	return len(b)
}
