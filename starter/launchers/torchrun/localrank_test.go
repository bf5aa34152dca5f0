package torchrun

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What has ${local_rank} is what torchrun makes of it: string.Template(arg).safe_substitute(local_rank=3).
// Elsewhere $$ stays, of which torchrun makes $.
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
