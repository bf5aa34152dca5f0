// Package runs starts runs as children of other workflows; see [Run] and [Start]. Programs that
// import it do not link the code that executes runs, because runs are started by name.
//
// A child is in its parent's namespace, and its [Options] determine what happens when the parent
// closes. It receives the spec in the same form as from the temporal CLI. ClusterRun validates
// the spec and sets the defaults, so a later version of this package with other rules still
// replays its callers' histories.
//
// However a run is started, [Memo], [Summary] and [Attributes] describe it to the server, and
// [Error] reports its failure.
package runs
