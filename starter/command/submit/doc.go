// Package submit has the command submit, for runs on the hosts of a queue, and validate, which
// checks specs and starts nothing.
package submit
