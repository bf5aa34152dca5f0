package closure

import (
	"bytes"
	"encoding/json"
)

// TupleKey is the key of the object that stands for a Python tuple in a closure's value, so that
// Python programs get back what the function returned. The key's value is the list of elements. In
// other languages, a tuple becomes a list; see [PlainValue].
const TupleKey = "$clusterrun.tuple"

// PlainValue returns a value with lists instead of tuples.
func PlainValue(value json.RawMessage) json.RawMessage {
	if !bytes.Contains(value, []byte(TupleKey)) {
		return value
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return value
	}
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if e.Encode(withoutTuples(v)) != nil {
		return value
	}
	return bytes.TrimSuffix(plain.Bytes(), []byte("\n"))
}

func withoutTuples(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withoutTuples(v[i])
		}
	case map[string]any:
		if elements, ok := v[TupleKey].([]any); ok && len(v) == 1 {
			return withoutTuples(elements)
		}
		for k := range v {
			v[k] = withoutTuples(v[k])
		}
	}
	return v
}
