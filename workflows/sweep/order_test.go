package sweep

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseOrder(t *testing.T) {
	for _, text := range []string{"loss:min", "a.b:max"} {
		o, err := ParseOrder(text)
		require.NoError(t, err)
		assert.Equal(t, text, o.String())
	}
	for _, text := range []string{"", "loss", ":min", "loss:best"} {
		_, err := ParseOrder(text)
		assert.ErrorContains(t, err, "such as loss:min", text)
	}
}

// A number comes from the returned value, and otherwise from the metrics.
func TestOrderOf(t *testing.T) {
	metrics := map[string]float64{"loss": 7}
	for _, c := range []struct {
		key, value string
		want       float64
		ok         bool
	}{
		{"loss", `{"loss": 0.5}`, 0.5, true},
		{"eval.loss", `{"eval": {"loss": 2}}`, 2, true},
		{"value", `3`, 3, true},
		{"value", `{"value": 4}`, 4, true},
		{"loss", `3`, 7, true},
		{"loss", ``, 7, true},
		{"loss", `{"loss": null}`, 7, true},
		{"loss", `{"loss": "low"}`, 7, true},
		{"accuracy", `{"loss": 1}`, 0, false},
		{"value", `"text"`, 0, false},
	} {
		n, ok := Order{Key: c.key}.Of(json.RawMessage(c.value), metrics)
		assert.Equal(t, c.ok, ok, "%s of %s", c.key, c.value)
		assert.Equal(t, c.want, n, "%s of %s", c.key, c.value)
	}
}

func TestBestTrials(t *testing.T) {
	numbers := []float64{3, 1, 0, 2}
	of := func(i int) (float64, bool) { return numbers[i], i != 2 }
	assert.Equal(t, []int{1, 3, 0}, Order{Key: "loss"}.Best(4, of))
	assert.Equal(t, []int{0, 3, 1}, Order{Key: "loss", Max: true}.Best(4, of))
}

func TestKeys(t *testing.T) {
	assert.Equal(t, []string{"acc", "loss", "lr"}, Keys(json.RawMessage(`{"loss": 1, "acc": 2, "name": "x", "more": {"n": 1}}`), map[string]float64{"loss": 3, "lr": 1}))
	assert.Equal(t, []string{"value"}, Keys(json.RawMessage(`2.5`), nil))
	assert.Empty(t, Keys(nil, nil))
}
