// Package sweep implements the rules of sweeps: a sweep runs one spec with different parameter
// values, a limited number of runs at a time. Each of these runs is a trial.
//
// A [Grid] is the list of trials: all combinations of lists and ranges, or the rows of a table.
// It keeps its text and computes a trial's values on demand, so that 100,000 trials need only as
// much memory as their text. [Spec.Trial] inserts the values into a run's spec: for {name} in
// commands, arguments, variables and directories (template.go), and as separate variables.
//
// A [Machine] decides which trial starts next and when a sweep is over:
//
//	Begin, Ended, Stop, Retry, Cancel ──► Machine ──► Start, Cancel, Finish
//
// It starts trials in order, up to a limit at a time. Once more trials have failed than the sweep
// tolerates, it does not start another, and running trials finish. A trial that was stopped on
// request has not failed. Failed trials can be put back into the queue. Trials that were lost with
// their host are put back up to two times.
//
// The state of all trials is a run-length encoded string in a [Snapshot], which a sweep keeps
// when its workflow continues as new. All functions are pure, so that workflow code can call
// them.
package sweep
