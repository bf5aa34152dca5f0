package command

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A command is the same where the others are not built.
func TestCommandsThatAreOftenExecuted(t *testing.T) {
	a := &app{out: &outlet{}, err: &outlet{}}
	say := func(root *cobra.Command, args ...string) (said string, err error) {
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(args)
		err = root.Execute()
		return out.String(), err
	}
	for name := range a.oftenExecuted() {
		for _, flag := range []string{"--help", "--no-such-flag"} {
			whole, wanted := say(a.root(), name, flag)
			alone, err := say(a.rootFor([]string{name}), name, flag)
			require.Equal(t, wanted, err, name)
			assert.Equal(t, whole, alone, name)
		}
		whole, _, err := a.root().Find([]string{name})
		require.NoError(t, err)
		assert.Equal(t, name, whole.Name())
		assert.Less(t, len(a.rootFor([]string{name}).Commands()), 3, "others are not built")
	}
}
