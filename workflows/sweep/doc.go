// Package sweep implements the rules of sweeps. A sweep runs one spec with different parameter
// values, and limits how many of these runs execute at a time. Each run is a trial.
//
// A [Grid] is the list of trials, which are either all combinations of lists and ranges or the rows
// of a table. It keeps only its source text and computes a trial's values on demand, so that
// 100,000 trials need little memory. [Spec.Trial] inserts the values into a run's spec, both in
// place of {name} in commands, arguments, variables and directories (template.go), and as separate
// variables.
//
// A [Machine] decides which trial starts next and when a sweep is over:
//
//	Begin, Ended, Stop, Retry, Cancel ──► Machine ──► Start, Cancel, Finish
//
// It starts trials in order, but limits how many run at a time. Once more trials have failed than
// the sweep tolerates, it starts no further trials, and lets running ones finish. A trial that was
// stopped on request has not failed. Failed trials can be returned to the queue. A trial that was
// lost with its host is returned to the queue up to two times.
//
// The state of all trials is a run-length encoded string in a [Snapshot], which a sweep keeps
// when its workflow continues as new. All functions are pure, so that workflow code can call
// them.
package sweep
