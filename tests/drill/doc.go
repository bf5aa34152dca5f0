// Package drill breaks a cluster on purpose and checks that nothing which is promised
// about faults was broken with it.
//
//	make drill                  30 faults, as in CI
//	make drill FAULTS=1000      more of them
//	make drill SEED=7           those of an earlier drill again
//
// A drill is a server on a file, three host workers, each in a network namespace of its
// own where root can make one and behind a [Link] in any case, a launcher, and in every
// round a mix of runs. A schedule made from the seed ([NewSchedule]) kills, freezes,
// cuts off and fills the disks of its parts, and heals them again.
//
// The programs of the runs are this package's own test binary ([Member]). They keep a
// ledger that owes nothing to clusterrun: files that they append to, and locks which
// prove that no two processes of one task, nor of two generations, live at once. After
// each round [Check] holds the results of the runs against the ledger.
package drill
