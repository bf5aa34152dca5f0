// Package runkey has the names that a host worker and its supervisor give to a run and its
// tasks. They keep apart what belongs to different executions.
package runkey
