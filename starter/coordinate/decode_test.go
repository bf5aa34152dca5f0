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
		`{"id":1,"op":"call","closures":[{"function":"same","arg":[1]}]}`:                {1.0, "field arg: there is no such field; there are id, op, closures, ids"},
		`{"id":2,"op":"schedule","closures":[{"function":"same","options":{"prio":3}}]}`: {2.0, "field prio: there is no such field"},
		`{"id":3,"op":"join","timeout":3}`:                                               {3.0, "field timeout: there is no such field"},
		`{"op":"fetch","idds":[1],"id":4}`:                                               {4.0, "field idds: there is no such field"},
		`{"id":"x","op":"join"}`:                                                         {"x", "field id: it is a string; want a number from 0"},
		`{"id":-1,"op":"join"}`:                                                          {-1.0, "field id: it is a number -1; want a number from 0"},
		`{"id":1.5,"op":"join"}`:                                                         {1.5, "field id: it is a number 1.5; want a number from 0"},
		`{"id":[1],"op":"join"}`:                                                         {nil, "field id: it is an array; want a number from 0"},
		`{"id":5,"op":1}`:                                                                {5.0, "field op: it is a number; want a string"},
		`{"id":8,"op":"join"} {"id":9,"op":"join"}`:                                      {nil, "something follows the JSON object"},
		`{"id":10,`: {nil, `the JSON ends too early`},
		`[]`:        {nil, "it is an array; want an object"},
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
	for line, want := range map[string]string{
		`{"id":6,"op":"call","closures":[{"function":"same"},{"function":"same","args":3}]}`:     `closures[1].args: must be a JSON array, is "3"`,
		`{"id":7,"op":"schedule","closures":[{"function":"same","options":{"timeout":"soon"}}]}`: `closures[0].options.timeout: "soon" is no duration`,
	} {
		p.ask(line)
		assert.Contains(t, p.answer().Error.Message, want)
	}
	assert.Zero(t, p.Counts().Scheduled, "nothing of them was taken")
	p.ask(`{"id":11,"op":"call","closures":[{"function":"same","args":[1],"kwargs":{"any":{"thing":2}},"options":{"key":"k","task":"","timeout":"3s","max_losses":2,"detached":true}}]}`)
	assert.Equal(t, Answer{ID: 11, Outcomes: []Outcome{{Value: json.RawMessage("1")}}}, p.answer(), "and it goes on")
}
