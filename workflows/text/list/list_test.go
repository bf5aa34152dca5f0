package list

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOf(t *testing.T) {
	assert.Equal(t, []string{"3", "5"}, Of([]int{3, 5}, strconv.Itoa))
	assert.Nil(t, Of([]int{}, strconv.Itoa))
}
