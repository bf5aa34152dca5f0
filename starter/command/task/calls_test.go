package task

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseAmount(t *testing.T) {
	for _, text := range []string{"nan", "inf", "-inf", "1e400", "-1", "-0.1", "x", ""} {
		_, err := parseAmount("TOTAL", text)
		assert.ErrorContains(t, err, "is not a number from 0", text)
	}
	n, err := parseAmount("CURRENT", "1e308")
	assert.NoError(t, err)
	assert.InEpsilon(t, 1e308, n, 0)
}
