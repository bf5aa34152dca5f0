package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOtherTexts(t *testing.T) {
	assert.Equal(t, "worker-1 is running; `clusterrun restart` restarts it", TaskRunningText("worker-1"))
}

func TestTextsOfAnEndInTheMiddleOfACall(t *testing.T) {
	e := Exit{Cause: CauseOrigin, Call: "closure 7 of train", Message: "last words"}
	assert.False(t, e.BadResult())
}

func TestVisible(t *testing.T) {
	assert.Equal(t, "a\n\tb ü", Visible("a\n\tb ü"))
	assert.Equal(t, `\x1b[31mred\a\r\u202e\u0085`, Visible("\x1b[31mred\a\r\u202e\u0085"))
	assert.Equal(t, "\uFFFD", Visible("\xff"))
	assert.Equal(t, `a b \x1b[31mc`, Cell(" a\n\tb\r\x1b[31mc\n"))
}
