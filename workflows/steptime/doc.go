// Package steptime finds slow tasks in a run. It is pure: times are passed in.
//
// A host keeps a [Series] for each of its tasks, with the durations of the process's latest steps.
// A step is a unit of reported progress or, if the task does not report progress, a barrier round
// of all tasks. Waits at barriers are excluded, because early tasks wait for late ones, so all
// would seem equally slow. Only durations leave the host, so the hosts' clocks may differ.
//
// [Find] compares typical step durations among tasks of the same type; their steps must be
// comparable. If ranks report progress and wait for each other by means other than clusterrun's
// barriers, such as NCCL collectives, all steps take equally long, and no rank is named even if one
// is late.
//
// # What is usual
//
// A typical duration is computed as follows. The latest steps are divided into an earlier and a
// later half. The shortest and the longest fifth of each half are dropped, since occasional
// checkpoints or evaluations are irrelevant. Of the two means, the shorter one counts, since a slow
// task is slow in both halves. With fewer than ten steps or reports, the duration is unknown.
package steptime
