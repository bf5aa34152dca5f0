// Package call has the commands that call functions in the tasks of a run: call, and its
// commands get, wait, list, pause, resume, cancel and pipe.
package call
