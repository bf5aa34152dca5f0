// Package submit has the commands for runs on the hosts of a queue: submit and schedule.
// validate checks specs and starts nothing.
package submit
