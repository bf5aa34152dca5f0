// Package submit has the commands for runs on the hosts of a queue: `submit`, `schedule-run`
// and `plan`. `validate` and `schema` check specs and start nothing.
package submit
