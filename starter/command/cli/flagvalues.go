package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// TakesValue reports whether a flag's value is the next argument.
func TakesValue(cmd *cobra.Command, arg string) bool {
	if strings.Contains(arg, "=") {
		return false
	}
	if name, long := strings.CutPrefix(arg, "--"); long {
		f := cmd.Flag(name)
		return f != nil && f.NoOptDefVal == ""
	}
	if len(arg) != 2 {
		return false // -n4
	}
	f := cmd.Flags().ShorthandLookup(arg[1:])
	return f != nil && f.NoOptDefVal == ""
}

// countOnce is a number of tasks: a flag with several names and one value.
type countOnce struct {
	n     *int
	given bool
}

func OnceIn(n *int, value int) *countOnce {
	*n = value
	return &countOnce{n: n}
}

func (c *countOnce) String() string { return strconv.Itoa(*c.n) }
func (c *countOnce) Type() string   { return "int" }

// Set implements [pflag.Value].
func (c *countOnce) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	if c.given && n != *c.n {
		return fmt.Errorf("it is already %d; use it once (-n and -np are the same flag)", *c.n)
	}
	*c.n, c.given = n, true
	return nil
}
