// Package runkey defines a host worker's and its supervisor's keys for a run and its tasks. The
// keys keep different executions apart.
package runkey
