package closure

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// manyFunctions are n names, 64 KiB together where n is 1000.
func manyFunctions(n int, prefix string) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s%0*d", prefix, 60-len(prefix), i))
	}
	return names
}

// A message takes 2 MiB, and so does the answer to a query.
func TestListsOfFunctionsAreWrittenOnce(t *testing.T) {
	m := ServingMessage{Host: "h", Queue: "q", Seq: 1, Broker: "b", Over: "o"}
	s := QueueStatus{State: QueueOpen, Counts: QueueCounts{Queued: 3}, Executions: []QueueExecution{{RunID: "r"}}}
	for i := range 1000 {
		functions := manyFunctions(1000, []string{"worker-", "ps-", ""}[i%3])
		if i == 500 {
			functions = nil
		}
		m.Serving = append(m.Serving, ServingTask{Task: spec.TaskName("worker", i), Process: "p", Slots: 1, Functions: functions})
		s.Workers = append(s.Workers, WorkerStatus{Task: spec.TaskName("worker", i), Host: "h", Serving: true, Slots: 1, Functions: functions})
	}
	text, err := json.Marshal(m)
	require.NoError(t, err)
	assert.Less(t, len(text), 512<<10)
	var heard ServingMessage
	require.NoError(t, json.Unmarshal(text, &heard))
	assert.Equal(t, m, heard)

	text, err = json.Marshal(&s)
	require.NoError(t, err)
	assert.Less(t, len(text), 512<<10)
	var told QueueStatus
	require.NoError(t, json.Unmarshal(text, &told))
	assert.Equal(t, s, told)
}

// Short lists of functions stay with their tasks.
func TestShortListsOfFunctionsStayWithTheirTasks(t *testing.T) {
	two := []ServingTask{{Task: "worker-0", Functions: []string{"f"}}, {Task: "worker-1", Functions: []string{"f"}}}
	text, err := json.Marshal(ServingMessage{Host: "h", Serving: two})
	require.NoError(t, err)
	assert.JSONEq(t, `{"host": "h", "queue": "", "seq": 0, "serving": [
		{"task": "worker-0", "process": "", "slots": 0, "functions": ["f"]}, {"task": "worker-1", "process": "", "slots": 0, "functions": ["f"]}]}`, string(text))
	var m ServingMessage
	require.NoError(t, json.Unmarshal(text, &m))
	assert.Equal(t, two, m.Serving)
	text, err = json.Marshal(ServingMessage{Over: "x"})
	require.NoError(t, err)
	assert.JSONEq(t, `{"host": "", "queue": "", "seq": 0, "serving": null, "over": "x"}`, string(text))
}

func TestListsThatAreNotThere(t *testing.T) {
	for _, list := range []int{-1, 2} {
		var m ServingMessage
		text := fmt.Sprintf(`{"serving": [{"task": "worker-3", "list": %d}], "lists": [["f"]]}`, list)
		require.ErrorContains(t, json.Unmarshal([]byte(text), &m), fmt.Sprintf("task worker-3 refers to list %d of functions, but only 1 exist", list))
	}
}
