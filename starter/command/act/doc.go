// Package act is the commands that change a run: stop, terminate, start-task, restart-task
// and signal. Each is a request to the run's workflow, which reports the tasks it reached.
package act
