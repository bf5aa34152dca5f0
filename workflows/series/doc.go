// Package series keeps what a process has used over time in a fixed number of points. It is
// pure: times are passed in.
//
// A [Point] covers an interval. It has the mean and the largest value of each measure, so that a
// short peak is still seen after points were merged. [Coarsen] merges neighbours until few
// enough are left. It prefers short and old ones: the length of an interval grows with the
// square root of its age. With 160 points, a day is covered at 20 s for the last minute, at
// 4 min an hour ago, and at 20 min at its beginning. Nothing is ever dropped.
//
// [Parse] reads the points of a file, to which [Append] appends records of a fixed size.
// [Resample] puts the points of several tasks on one grid, for tables and plots.
package series
