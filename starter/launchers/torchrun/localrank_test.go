package torchrun

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An argument with ${local_rank} is replaced as torchrun does it:
// string.Template(arg).safe_substitute(local_rank=3). Other arguments keep $$, which torchrun
// replaces with $.
func TestWithLocalRank(t *testing.T) {
	for arg, want := range map[string]string{
		"--local_rank=${local_rank}":      "--local_rank=3",
		"$local_rank":                     "3",
		"$local_rank.log":                 "3.log",
		"a'b ${local_rank} \"$HOME\" `x`": "a'b 3 \"$HOME\" `x`",
		"$${local_rank} is ${local_rank}": "${local_rank} is 3",
		"${local_rank}${local_rank}":      "33",
		"${local_rank}\n\\":               "3\n\\",
	} {
		command := WithLocalRank([]string{"printf", "%s|", "", arg, "$HOME $$"})
		c := exec.Command(command[0], command[1:]...)
		c.Env = append(c.Environ(), "LOCAL_RANK=3")
		out, err := c.Output()
		require.NoError(t, err, arg)
		assert.Equal(t, "|"+want+"|$HOME $$|", string(out), arg)
	}
	for _, arg := range []string{"", "$local_ranks", "${rank}", "$$local_rank", "$${local_rank}", "local_rank"} {
		command := []string{"${local_rank}", arg}
		assert.Equal(t, command, WithLocalRank(command), "it is left alone")
	}
	assert.Equal(t, strings.Fields("train.py"), WithLocalRank([]string{"train.py"}))
}
