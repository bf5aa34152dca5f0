// Package sweep has the rules of sweeps: runs of one spec, each with other values of some
// parameters, of which so many are open at once. Each of these runs is a trial.
//
// A [Grid] is the list of trials: all combinations of lists and ranges, or the rows of a table.
// It keeps its text and computes the values of a trial when they are needed, so that 100,000
// trials cost as much memory as their text. [Spec.Trial] puts the values into the spec of a run:
// for {name} in commands, arguments, variables and directories (template.go), and into
// variables of its own.
//
// A [Machine] decides which trial starts next and when a sweep is over:
//
//	Begin, Ended, Stop, Retry, Cancel ──► Machine ──► Start, Cancel, Finish
//
// It starts trials in order, at most so many at once. Once more trials have failed than the sweep
// tolerates, it starts no more, and those that run end by themselves. A trial that was stopped on
// request has not failed. Failed trials can be put back into the queue. Those that were lost with their
// host are, up to two times.
//
// The state of all trials is a text of run lengths in a [Snapshot], which a sweep carries along
// when its workflow continues as new. All functions are pure, so that workflow code can call them.
package sweep
