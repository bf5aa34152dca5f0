// Package runs starts runs from other workflows, as their children: [Run], [Start]. A program that
// imports it links nothing that executes runs; those are started by name.
//
// A child is in the namespace of its parent and ends with it as its [Options] say. It takes the spec
// as the temporal CLI gives it to ClusterRun, which validates it and sets the defaults; so a later
// version of this package with other rules still replays the histories of its callers.
//
// All ways to start a run share what they tell the server about it: [Memo], [Summary] and
// [Attributes]; and how they report its end: [Error].
package runs
