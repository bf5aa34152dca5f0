// Package report reports the progress of runs and how they ended: it waits for a run
// (await.go, several.go), follows its changes (watching.go), and prints its result, root cause first
// (report.go). errorfile.go copies the error file of a failure for the program that started
// clusterrun.
package report
