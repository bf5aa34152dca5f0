package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWhoRefusesIsAskedAgainSoonAndThenSeldom(t *testing.T) {
	assert.Equal(t, 5*time.Second, refusalLasts(1))
	assert.Equal(t, 10*time.Second, refusalLasts(2))
	assert.Equal(t, 160*time.Second, refusalLasts(6))
	assert.Equal(t, 5*time.Minute, refusalLasts(7))
	assert.Equal(t, 5*time.Minute, refusalLasts(1_000_000))
}
