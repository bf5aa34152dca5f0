// Package disk is the commands for the disk space of runs that have ended: du, prune, rm and
// keep. [pastRun] joins what a log directory and the server know of a run.
package disk
