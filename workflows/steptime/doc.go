// Package steptime finds slow tasks of a run. It is pure: times are passed in.
//
// A host keeps a [Series] for each of its tasks, with the durations of the process's latest steps.
// A step is a unit of reported progress or, without progress, a barrier round of all tasks. Waits
// at barriers are excluded, because early tasks wait for late tasks, and all would seem equally
// slow. Only durations leave the host, so hosts' clocks may differ.
//
// [Find] compares typical step durations among tasks of the same type; their steps must be
// comparable. If ranks wait for each other by other means than clusterrun's barriers, such as
// NCCL collectives, and count steps by progress, all steps take equally long, and no rank is
// named even if one is late.
//
// # What is usual
//
// The latest steps are divided into an earlier and a later half. The shortest and the longest fifth
// of each half are dropped, since occasional checkpoints or evaluations are irrelevant. The shorter
// mean counts, since a slow task is slow in both halves. The duration is unknown with fewer than
// ten steps or reports.
package steptime
