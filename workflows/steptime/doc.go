// Package steptime decides which tasks of a run are slow. It is pure: times are passed in.
//
// A host keeps a [Series] for each of its tasks: the times that the process took for its latest
// steps. A step is a unit that the program counts by its progress or, if it reports none, a
// round of a barrier of all tasks. Waits at barriers do not count: a task that is early waits
// there for one that is late, and otherwise all would take equally long. Only durations leave
// the host, each measured by its clock, so the clocks of hosts may differ.
//
// [Find] compares the usual durations of tasks of the same type, whose steps must mean the
// same. A program whose ranks wait for each other by means other than clusterrun's barriers, such as
// a collective of NCCL, has equally long steps if it counts them by progress: then no rank is named,
// even if one is late.
//
// # What is usual
//
// The latest steps are divided into an earlier and a later half. The shortest and the longest
// fifth of each half are left out, since a checkpoint or an evaluation now and then says
// nothing, and the shorter mean of the two counts: a task that is slow is so in both. With less
// than ten steps, or ten reports of them, nothing is known.
package steptime
