// Package drill breaks a cluster on purpose and checks that every promise about faults still
// holds.
//
//	make drill                  30 faults
//	make drill FAULTS=1000      more of them
//	make drill SEED=7           repeat the faults of an earlier drill
//
// A drill consists of a server on a file, three host workers, a launcher, and a mix of runs in
// every round. Each worker is behind a [Link] and, if the test runs as root, in a separate network
// namespace. A schedule generated from the seed ([NewSchedule]) kills and freezes parts, cuts them
// off and fills their disks, makes hosts fail a check, gives a run notice, and heals everything.
//
// The runs' program is this package's test binary ([Member]). It keeps a ledger independent of
// clusterrun: append-only files, and locks which prove that processes of one task, or of two
// generations, never overlap. After each round, check compares the runs' results with the ledger.
package drill
