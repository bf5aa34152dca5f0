package activities

import (
	"fmt"
	"strconv"
	"strings"
)

// ActivityID is the ID of the RunTask activity of a launch of a task. It reads
// well in the Web UI, and a host finds the task in it again.
func ActivityID(task string, generation, launch int) string {
	return fmt.Sprintf("%s/%d.%d", task, generation, launch)
}

// taskOfGeneration is a task in one generation of its run.
type taskOfGeneration struct {
	task       string
	generation int
}

// ofActivity finds what an ID made by [ActivityID] is for.
func ofActivity(id string) taskOfGeneration {
	task, rest, _ := strings.Cut(id, "/")
	number, _, _ := strings.Cut(rest, ".")
	generation, err := strconv.Atoi(number)
	if err != nil {
		return taskOfGeneration{}
	}
	return taskOfGeneration{task, generation}
}
