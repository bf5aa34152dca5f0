// Package runs starts runs from other workflows, as their children: [Run], [Start]. Its importers
// do not link the code that executes runs, because runs are started by name.
//
// A child is in its parent's namespace, and its [Options] determine what happens when the parent
// closes. It receives the spec in the same form as from the temporal CLI. ClusterRun validates
// the spec and sets the defaults, so a later version of this package with other rules still
// replays its callers' histories.
//
// All ways to start a run share what they tell the server about it, [Memo], [Summary] and
// [Attributes], and how they report its failure, [Error].
package runs
