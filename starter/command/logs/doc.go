// Package logs implements the command logs. Its [Reader] shows a run's output, which the package
// files finds and follows. Other commands show output on a [Screen], too.
package logs
