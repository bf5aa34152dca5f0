// Package runkey has the names that a host worker and its supervisor give a run
// and its tasks, so that what they keep of one execution is never found by another.
package runkey
