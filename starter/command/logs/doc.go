// Package logs is `clusterrun logs`: it reads the output of a run from this machine, from
// copies, and from the services of other hosts (loghosts.go). Other commands use [Reader] to
// show output or copy it.
package logs
