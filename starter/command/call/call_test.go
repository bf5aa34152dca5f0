package call

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
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
	all = must.Get(readAll(scheduling{}, `{"function":"f","options":{"key":"k"}}`))(t)
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

func TestWhatWasCancelled(t *testing.T) {
	for want, n := range map[string][2]int{
		"cancelled 3 queued calls; 2 running calls were asked to end": {3, 2},
		"cancelled 1 queued call; 1 running call was asked to end":    {1, 1},
		"cancelled 2 queued calls":                                    {2, 0},
		"cancelled 0 queued calls; 1 running call was asked to end":   {0, 1},
		"nothing to cancel: these calls have ended":                   {0, 0},
	} {
		assert.Equal(t, want, cancelledLine(n[0], n[1]))
	}
}

// An error names the flag that gave the value.
func TestRefusalsNameTheFlag(t *testing.T) {
	for field, want := range map[string]string{
		"function":        "FUNCTION: no",
		"args":            "ARG: no",
		"kwargs":          "--kwargs: no",
		"options.key":     "--key: no",
		"options.task":    "--task: no",
		"options.timeout": "--call-timeout: no",
		"resources":       "resources: no",
	} {
		refused := &closure.RefusedError{Reason: &spec.InvalidRequestError{Problems: []spec.Problem{{Path: field, Message: "no"}}}}
		err := closureError(context.Background(), context.Background(), 0, refused)
		var usage *cli.UsageError
		assert.True(t, errors.As(err, &usage))
		assert.EqualError(t, err, want)
	}
}

// The command reports once that no host worker answers, and once that a worker answers again.
func TestNobodyIsThereToAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nobody := &starter.UnansweredError{RunID: "iris-1"}
		answers := []error{nil, nobody, context.DeadlineExceeded, nobody, nil, nobody}
		var mu sync.Mutex // of the two
		var news []error
		w := watchWorkers(t.Context(), func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			next := answers[0]
			if len(answers) > 1 {
				answers = answers[1:]
			}
			return next
		}, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			news = append(news, err)
		})
		time.Sleep(askFirst / 2)
		synctest.Wait()
		mu.Lock()
		assert.Len(t, answers, 6, "what is answered soon is not looked after")
		mu.Unlock()
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []error{nobody, nil, nobody}, news)
		assert.Equal(t, nobody, w.end())
	})
}

// A command that waits for a paused queue, or for closures that no task serves, reports that,
// and reports each change.
func TestACommandSaysWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // of the two
		var now closure.QueueStatus
		var said []string
		ctx, cancel := context.WithCancel(t.Context())
		go tellWaits(ctx, func(context.Context) (closure.QueueStatus, error) {
			mu.Lock()
			defer mu.Unlock()
			return now, nil
		}, func(text string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, text)
		})
		for _, s := range []closure.QueueStatus{
			{},
			{Unserved: []closure.Unserved{{Function: "add", Queued: 1}, {Function: "mul", Task: "worker-3", Queued: 2}}},
			{Unserved: []closure.Unserved{{Function: "add", Queued: 1}, {Function: "mul", Task: "worker-3", Queued: 2}}},
			{},
			{State: closure.QueuePaused, Paused: "lunch", Counts: closure.QueueCounts{Queued: 1}},
			{State: closure.QueuePaused, Paused: "lunch"},
		} {
			mu.Lock()
			now = s
			mu.Unlock()
			time.Sleep(askAgain)
			synctest.Wait()
		}
		cancel()
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, []string{
			"1 queued call waits until a task serves that has registered add; 2 queued calls wait until worker-3 serves: only that task may call mul",
			"the queue is paused (lunch) until `clusterrun call resume RUN`",
		}, said)
	})
}
