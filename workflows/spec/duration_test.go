package spec

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDurationText(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"3s": 3 * time.Second, "90m": 90 * time.Minute, "1h30m": 90 * time.Minute, "0": 0, "0.5s": 500 * time.Millisecond, "1us": time.Microsecond,
	} {
		d, err := ParseDuration(text)
		require.NoError(t, err)
		assert.Equal(t, Duration(want), d)
	}
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 10 * time.Second: "10s", time.Minute: "1m", 10 * time.Minute: "10m", time.Hour: "1h", 20 * time.Hour: "20h",
		time.Hour + time.Second: "1h0m1s", 90 * time.Minute: "1h30m", time.Minute + time.Millisecond: "1m0.001s", -time.Minute: "-1m",
	} {
		assert.Equal(t, want, Duration(d).String())
		back, err := ParseDuration(want)
		require.NoError(t, err)
		assert.Equal(t, Duration(d), back)
	}
	for _, text := range []string{"", "3", "1d", "3 s", "three", "9999999h"} {
		_, err := ParseDuration(text)
		assert.EqualError(t, err, Quote(text)+` is not a duration; write it like "3s", "90m" or "1h30m"`)
	}
}

func TestDurationJSON(t *testing.T) {
	var v struct{ D *Duration }
	require.NoError(t, json.Unmarshal([]byte(`{"D": "1h0m0s"}`), &v))
	assert.Equal(t, time.Hour, v.D.Std())
	assert.JSONEq(t, `{"D": "1h"}`, toJSON(t, v))
	require.NoError(t, json.Unmarshal([]byte(`{"D": null}`), &v))
	assert.Zero(t, v.D.Std(), "nil is 0")
	assert.ErrorContains(t, json.Unmarshal([]byte(`{"D": 3}`), &v), `a duration is a text such as "3s", not 3`)
	assert.ErrorContains(t, json.Unmarshal([]byte(`{"D": "3"}`), &v), `"3" is not a duration`)
	assert.Equal(t, time.Minute, DurationOf(time.Minute).Std())
}
