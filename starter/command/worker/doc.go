// Package worker implements the host worker's commands: `clusterrun worker` in this terminal, in
// the background (background.go) and as a service (workerunit.go), and a run's private one
// (hostworker.go), with the terminal that it lends to a task (terminal.go). internalcmds.go
// contains the commands that its processes execute.
package worker
