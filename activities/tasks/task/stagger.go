package task

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"
)

// stagger waits before the first closure, so that a large run's tasks do not all start together.
// It waits for the task's index times TF_COORDINATOR_SCHEDULE_START_DELAY seconds, and at most
// TF_COORDINATOR_SCHEDULE_START_DELAY_MAX if that is set. It reports whether a stop of all the
// run's tasks was requested during the wait.
func (t *Task) stagger(ctx context.Context) (stop bool, err error) {
	d, err := startDelay(os.Getenv)
	if err != nil || d <= 0 {
		return false, err
	}
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if _, err := t.WaitForStop(waiting); err == nil {
		return true, nil
	}
	<-waiting.Done() // the host cannot be asked about stops
	return false, context.Cause(ctx)
}

const (
	delayVar    = "TF_COORDINATOR_SCHEDULE_START_DELAY"
	maxDelayVar = delayVar + "_MAX"
)

func startDelay(getenv func(string) string) (time.Duration, error) {
	seconds := func(name string) (float64, error) {
		text := getenv(name)
		if text == "" {
			return 0, nil
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0) || math.IsInf(v, 0) {
			return 0, fmt.Errorf("%s is %q; want a number of seconds, such as 5", name, text)
		}
		return v, nil
	}
	each, err := seconds(delayVar)
	if err != nil {
		return 0, err
	}
	most, err := seconds(maxDelayVar)
	if err != nil {
		return 0, err
	}
	index, _ := strconv.Atoi(getenv("CLUSTERRUN_TASK_INDEX"))
	delay := each * float64(index)
	if most > 0 {
		delay = min(delay, most)
	}
	return time.Duration(min(delay, math.MaxInt32) * float64(time.Second)), nil
}
