package coordinate

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is no request is said so in words, with the ID of the line as it is there.
func TestLinesThatAreNoRequests(t *testing.T) {
	p := begin(t)
	for line, want := range map[string]struct {
		id      any
		message string
	}{
		`{"id":1,"op":"call","closures":[{"function":"same","arg":[1]}]}`:                {1.0, `unknown field "arg"`},
		`{"id":2,"op":"schedule","closures":[{"function":"same","options":{"prio":3}}]}`: {2.0, `unknown field "prio"`},
		`{"id":3,"op":"join","timeout":3}`:                                               {3.0, `unknown field "timeout"`},
		`{"op":"fetch","idds":[1],"id":4}`:                                               {4.0, `unknown field "idds"`},
		`{"id":"x","op":"join"}`:                                                         {"x", `id must be a number, from 0 up and without a fraction, is string`},
		`{"id":-1,"op":"join"}`:                                                          {-1.0, `id must be a number, from 0 up and without a fraction, is number -1`},
		`{"id":1.5,"op":"join"}`:                                                         {1.5, `id must be a number, from 0 up and without a fraction, is number 1.5`},
		`{"id":[1],"op":"join"}`:                                                         {nil, `id must be a number, from 0 up and without a fraction, is array`},
		`{"id":5,"op":1}`:                                                                {5.0, `op has the wrong type: number`},
		`{"id":6,"op":"call","closures":[{"function":"same","args":3}]}`:                 {6.0, `closures.args has the wrong type: number`},
		`{"id":7,"op":"schedule","closures":[{"function":"same","options":{"timeout":"soon"}}]}`: {7.0, `soon`},
		`{"id":8,"op":"join"} {"id":9,"op":"join"}`:                                              {nil, `write one request a line`},
		`{"id":10,`: {nil, `the JSON ends too early`},
		`[]`:        {nil, `it must be an object, is array`},
	} {
		p.ask(line)
		answer, err := p.out.ReadBytes('\n')
		require.NoError(t, err)
		var got map[string]any
		require.NoError(t, json.Unmarshal(answer, &got))
		assert.Equal(t, want.id, got["id"], line)
		said, _ := got["error"].(map[string]any)
		assert.Equal(t, ErrRefused, said["kind"], line)
		assert.Contains(t, said["message"], "the line is no request: ", line)
		assert.Contains(t, said["message"], want.message, line)
		assert.NotContains(t, said["message"], "Go ", line)
	}
	assert.Zero(t, p.Counts().Scheduled, "nothing of them was taken")
	p.ask(`{"id":11,"op":"call","closures":[{"function":"same","args":[1],"kwargs":{"any":{"thing":2}},"options":{"key":"k","task":"","priority":1,"timeout":"3s","retries":1,"max_losses":2,"detached":true}}]}`)
	assert.Equal(t, Answer{ID: 11, Outcomes: []Outcome{{Value: json.RawMessage("1")}}}, p.answer(), "and it goes on")
}
