package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// TaskActivityID returns the ID of the RunTask activity of a launch of a task. It reads
// well in the Web UI, and others find the task in it again.
func TaskActivityID(task string, generation, launch int) string {
	return fmt.Sprintf("%s/%d.%d", task, generation, launch)
}

// TaskOfActivity is the inverse of [TaskActivityID], as far as the launch is of no
// interest. ok is false for the IDs of other activities.
func TaskOfActivity(id string) (task string, generation int, ok bool) {
	task, rest, _ := strings.Cut(id, "/")
	number, _, _ := strings.Cut(rest, ".")
	generation, err := strconv.Atoi(number)
	if err != nil {
		return "", 0, false
	}
	return task, generation, true
}
