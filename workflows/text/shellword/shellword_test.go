package shellword

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestAShellReadsTheSameWords(t *testing.T) {
	assert.Equal(t, `train.py 'it'\''s' '' --lr=1e-3,2 '$HOME' '~' 'a
b'`, Join([]string{"train.py", "it's", "", "--lr=1e-3,2", "$HOME", "~", "a\nb"}))
	for _, word := range []string{"", "a b", `\`, `"`, "'", "$(x)", "`x`", "~", "*", "#", "=x", "é\n"} {
		out := must.Get(exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+Of(word)).Output())(t)
		assert.Equal(t, word, string(out))
	}
}
