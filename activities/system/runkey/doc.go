// Package runkey defines the keys by which a host worker and its supervisor identify a run and its
// tasks. The keys of different executions differ.
package runkey
