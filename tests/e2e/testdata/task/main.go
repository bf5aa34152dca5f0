// Program task is a task in Go: it meets the other tasks, reports its progress, and returns the
// number of meetings.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	t, err := task.Current()
	if err != nil {
		return err
	}
	rounds := 0
	for range 3 {
		r, err := t.Barrier(ctx, "step", task.Local(), task.Timeout(time.Minute))
		if err != nil {
			return err
		}
		rounds = r.Round
	}
	if err := t.Progress(ctx, 3, 3, "done"); err != nil {
		return err
	}
	return t.Result(ctx, map[string]int{"rounds": rounds})
}
