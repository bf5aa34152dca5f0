// Package logs implements the command logs: it reads the output of a run from this machine,
// from copies, and from the services of other hosts (loghosts.go). Other commands use [Reader]
// to show or copy output.
package logs
