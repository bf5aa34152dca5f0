// Package control implements the commands that change a run. Each sends a request to the run's
// workflow, which reports the tasks that it reached.
package control
