// Package disk has the commands for the disk space of runs that have ended: du, prune, rm and
// keep. [pastRun] joins the facts about a run from a log directory and from the server.
package disk
