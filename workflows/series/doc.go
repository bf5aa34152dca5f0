// Package series records a process's resource usage over time in a fixed number of points. It is
// pure: times are passed in.
//
// A [Point] covers an interval. It contains the mean and the maximum of each measure, so that
// merging points preserves short peaks. [Coarsen] merges neighbors until few enough are left. It
// prefers short and old intervals, so an interval's length grows with the square root of its age.
// If 160 points cover a day, their intervals are 20 s long in the last minute, 4 min an hour ago,
// and 20 min at the start. Nothing is dropped.
//
// [Parse] reads a file's points; [Append] appends fixed-size records to the file. [Resample]
// aligns several tasks' points on one grid, for tables and plots.
//
// A [Report] contains the numbers that a program reports with its progress. [Thin] bounds them.
package series
