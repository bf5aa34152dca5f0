// Package report reports the progress of runs and how they ended: it waits for runs (await.go,
// several.go), follows their changes (watching.go), and prints results, root cause first
// (report.go). errorfile.go copies a failure's error file for the program that started
// clusterrun.
package report
