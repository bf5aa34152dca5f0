package closure

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPlainValue(t *testing.T) {
	for in, want := range map[string]string{
		`{"b": 1, "a": 2}`: `{"b": 1, "a": 2}`,
		`null`:             `null`,
		`{"$clusterrun.tuple":[1,{"x":{"$clusterrun.tuple":["<",12345678901234567890]}},[]]}`: `[1,{"x":["<",12345678901234567890]},[]]`,
		`{"$clusterrun.tuple":[1],"more":2}`:                                                  `{"$clusterrun.tuple":[1],"more":2}`,
		`{"$clusterrun.tuple":`:                                                               `{"$clusterrun.tuple":`,
	} {
		assert.Equal(t, want, string(PlainValue(json.RawMessage(in))))
	}
}
