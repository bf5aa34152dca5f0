package spec

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestShownValue(t *testing.T) {
	for value, want := range map[string]string{
		`{"loss": {"$clusterrun.number": "NaN"}, "a": [{"$clusterrun.number":"-Infinity"}, 1]}`: `{"loss":NaN,"a":[-Infinity,1]}`,
		`{"$clusterrun.number":"Infinity"}`:                                                     `Infinity`,
		`"{\"$clusterrun.number\":\"NaN\"}"`:                                                    `"{\"$clusterrun.number\":\"NaN\"}"`,
		`{"$clusterrun.number":"seven"}`:                                                        `{"$clusterrun.number":"seven"}`,
		`{"$clusterrun.number":"NaN","more":1}`:                                                 `{"$clusterrun.number":"NaN","more":1}`,
		`{"$clusterrun.bytes":"AA=="}`:                                                          `{"$clusterrun.bytes":"AA=="}`,
		`{`:                                                                                     `{`,
	} {
		assert.Equal(t, want, ShownValue(json.RawMessage(value)))
	}
}
