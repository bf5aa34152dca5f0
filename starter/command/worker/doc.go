// Package worker has the commands of the host worker: `clusterrun worker` in this terminal, in
// the background (background.go) and as a service (workerunit.go), and the private one of a
// run (hostworker.go), with the terminal that it lends to a task (terminal.go). internalcmds.go
// has the commands that its processes execute.
package worker
