package call

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// readAll reads closures until there is something wrong, or no more.
func readAll(s scheduling, text string) ([]closure.Closure, error) {
	next := s.readFrom(strings.NewReader(text))
	var all []closure.Closure
	for {
		c, err := next()
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, c)
	}
}

func TestClosuresOfAFile(t *testing.T) {
	all, err := readAll(scheduling{task: "worker-1"}, `{"function":"f"}

{"function":"g","args":[1],"kwargs":{"rate":0.1},"options":{"key":"k","timeout":"3s"}}
`)
	require.NoError(t, err)
	assert.Equal(t, []closure.Closure{
		{Function: "f", Options: &closure.Options{Task: "worker-1"}},
		{Function: "g", Args: []byte(`[1]`), Kwargs: []byte(`{"rate":0.1}`), Options: &closure.Options{Task: "worker-1", Key: "k", Timeout: "3s"}},
	}, all)
	all, err = readAll(scheduling{}, `{"function":"f","options":{"key":"k"}}`)
	require.NoError(t, err)
	assert.Equal(t, []closure.Closure{{Function: "f", Options: &closure.Options{Key: "k"}}}, all)
}

// Unknown fields are errors: {"arg": [3]} would otherwise be a call without arguments.
func TestLinesThatAreNotUnderstood(t *testing.T) {
	for line, want := range map[string]string{
		`{"function":"f","arg":[1]}`:                 "field arg: unknown field",
		`{"function":"f","options":{"prio":1}}`:      "field prio: unknown field",
		`{"function":"f","options":{"timeout":"x"}}`: `options.timeout: "x" is not a duration`,
		`{"function":"f","id":3}`:                    "leave them out",
		`{"function":"f"} {"function":"g"}`:          "something follows the JSON object",
		`{"function":"f"} x`:                         "something follows the JSON object",
		`{"args":[1]}`:                               "function: missing",
		`["f"]`:                                      "it is an array; want an object",
		`{"function":"f","args":[1]`:                 "the JSON ends too early",
	} {
		all, err := readAll(scheduling{}, `{"function":"first"}`+"\n"+line+"\n")
		var usage *cli.UsageError
		require.ErrorAs(t, err, &usage, line)
		assert.Contains(t, err.Error(), "line 2", line)
		assert.Contains(t, err.Error(), want, line)
		assert.Len(t, all, 1)
	}
}
