package activities

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/activities/taskapi"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func textValue(sign string, bytes int) json.RawMessage {
	return json.RawMessage(`"` + strings.Repeat(sign, bytes-2) + `"`)
}

// One value of the largest size is always returned, whatever it consists of.
func TestTheLargestValueFits(t *testing.T) {
	o := ReleaseOutput{Values: map[string]json.RawMessage{"worker-0": textValue("x", taskapi.MaxResult)}}
	o.fit()
	assert.Len(t, o.Values, 1)
	assert.Empty(t, o.LeftOut)
}

// If not all values fit, the largest are left out, measured as they are sent, and no more of
// them than necessary.
func TestValuesThatDoNotFit(t *testing.T) {
	o := ReleaseOutput{
		Exits: map[string][]spec.Exit{"worker-0": {{Message: "first"}, {Message: strings.Repeat("m", 1000)}}},
		Values: map[string]json.RawMessage{
			"angles": textValue("<", 100<<10), // six times as long when sent
			"small":  json.RawMessage("1"),
		},
	}
	for i := range 4 {
		o.Values[fmt.Sprint("large-", i)] = textValue("x", 200<<10)
	}
	o.fit()
	assert.Equal(t, []string{"angles"}, o.LeftOut)
	assert.Len(t, o.Values, 5)
	assert.LessOrEqual(t, carried(o), maxReleasePayload)
	assert.Len(t, o.Exits["worker-0"], 1, "older exits go first")
	assert.Len(t, o.Exits["worker-0"][0].Message, 200)
}
