// Package runs starts runs from other workflows: as child workflows ([Run], [Start]) and as Nexus
// operations ([RunNexus], [WaitNexus]). A program that imports it links nothing that executes
// runs; those are started by name.
//
//	caller's workflow ──child workflow───────────────────────► ClusterRun
//	        │                                                       ▲ callback
//	        └──Nexus operation──► endpoint ──► worker of the queue ─┘
//
// A child is in the namespace of its parent and ends with it as its [Options] say. A Nexus
// operation reaches the namespace and the queue of its endpoint, and can attach to a run that
// exists. Both take the spec as the temporal CLI gives it to ClusterRun, which validates it and
// sets the defaults; so a later version of this package with other rules still replays the
// histories of its callers.
//
// All ways to start a run share what they tell the server about it: [Memo], [Summary] and
// [Attributes]; and how they report its end: [Error].
package runs
