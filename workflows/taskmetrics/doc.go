// Package taskmetrics keeps the numbers that a program reports with its progress, such as a loss. It is
// pure: times are passed in.
//
// A process keeps at most [Kept] reports: [Thin] drops some while all of the process's time stays
// covered. [Parse] reads a file's reports, and [Append] appends to it.
package taskmetrics
