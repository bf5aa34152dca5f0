// Package call has the commands that call functions in the tasks of a run: schedule, fetch,
// join, done, closures and coordinate.
package call
