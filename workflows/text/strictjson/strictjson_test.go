package strictjson

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type inner struct {
	Key string `json:"key"`
}

type embedded struct {
	Deep bool `json:"deep"`
}

type request struct {
	embedded
	ID    uint64  `json:"id"`
	Wait  float64 `json:"wait"`
	List  []int   `json:"list"`
	Inner *inner  `json:"inner"`
}

func TestDecode(t *testing.T) {
	var r request
	require.NoError(t, Decode([]byte(` {"id": 3, "deep": true, "inner": {"key": "k"}}
`), &r))
	assert.Equal(t, request{ID: 3, embedded: embedded{true}, Inner: &inner{"k"}}, r)
	for text, want := range map[string]string{
		`{"idd": 1}`:            "field idd: unknown field; the fields are deep, id, wait, list, inner, inner.key",
		`{"inner": {"kee": 1}}`: "field kee: unknown field; the fields are deep, id, wait, list, inner, inner.key",
		`{"inner": {"key": 1}}`: "field inner.key: it is a number; want a string",
		`{"id": -1}`:            "field id: it is a number -1; want a number from 0",
		`{"wait": 1e999}`:       "field wait: the number 1e999 is too large",
		`{"list": {}}`:          "field list: it is an object; want a list",
		`{} {}`:                 "unexpected data after the JSON object",
		`{} x`:                  "unexpected data after the JSON object",
		`[]`:                    "it is an array; want an object",
		`{"id": 1`:              "the JSON ends too early",
		``:                      "the JSON ends too early",
		`{id: 1}`:               "it is not JSON: invalid character 'i' looking for beginning of object key string",
	} {
		err := Decode([]byte(text), &request{})
		var wrong *Error
		require.ErrorAs(t, err, &wrong, text)
		assert.EqualError(t, err, want, text)
	}
}

func TestDecodeKnown(t *testing.T) {
	var r request
	require.NoError(t, DecodeKnown([]byte(`{"id": 3, "idd": 1}`), &r))
	assert.Equal(t, request{ID: 3}, r)
	require.EqualError(t, DecodeKnown([]byte(`{"list": {}}`), &r), "field list: it is an object; want a list")
}
