// Package activities touches the world for the ClusterRun workflow: it places
// tasks on a host, runs their processes, and says how each ended.
//
// All activities are methods of [Host], one file each:
//
//	Reserve   this host takes tasks of a run: checks the programs and
//	          directories, leases ports, keeps the plan of the run on disk
//	Prepare   tells the host the whole cluster, where it spans several hosts
//	RunTask   holds a lease on the process of one task for as long as it lives
//	Control   something short: terminate, restart, signal, stacks, seal, check
//	Release   gives the host back and returns every exit of every process
//
// and BarrierCheck, of [BarrierServer], for the rounds of barriers: it asks the run
// whether those who are missing can still come.
//
// A host worker may be killed at any moment. What must outlive it is with the
// supervisor (processes, exits, ports) or on disk (plans), never in here: a
// [Host] made anew over the same supervisor goes on where the old one was.
// The reconciler (reconcile.go) finds processes nobody holds a lease on, whose
// run ended while no host worker was there to hear of it.
package activities
