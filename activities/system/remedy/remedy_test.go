package remedy

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSplit(t *testing.T) {
	cause := errors.New("it is full; really")
	err := With(cause, "remove something")
	assert.ErrorIs(t, err, cause)
	for _, c := range []struct {
		err          error
		text, remedy string
	}{
		{err, "it is full; really", "remove something"},
		{fmt.Errorf("disk: %w", err), "disk: it is full; really", "remove something"},
		{fmt.Errorf("%w, and more", err), "it is full; really; remove something, and more", ""},
		{cause, "it is full; really", ""},
	} {
		text, remedy := Split(c.err)
		assert.Equal(t, c.text, text)
		assert.Equal(t, c.remedy, remedy)
	}
}
