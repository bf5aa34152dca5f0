// Package drill breaks a cluster on purpose and checks that every promise about faults still
// holds.
//
//	make drill                  30 faults
//	make drill FAULTS=1000      more of them
//	make drill SEED=7           repeat the faults of an earlier drill
//
// A drill consists of a server on a file, three host workers, each behind a [Link] and, if root
// can make one, in a network namespace of its own, a launcher, and a mix of runs in every
// round. A schedule made from the seed ([NewSchedule]) kills, freezes, cuts off and fills the
// disks of its parts, makes hosts fail a check, lets runs preempt others, and heals all of it.
//
// The programs of the runs are this package's own test binary ([Member]). They keep a ledger
// independent of clusterrun: files that they append to, and locks which prove that no two
// processes of one task, nor of two generations, live at once. After each round [Check]
// compares the results of the runs with the ledger.
package drill
