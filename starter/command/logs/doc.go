// Package logs implements the command logs: it reads a run's output from this machine, from
// copies, and from other hosts' services (loghosts.go). Other commands use [Reader] to show or
// copy output.
package logs
