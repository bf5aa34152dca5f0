// Package disk has the command that removes runs that have ended. [pastRun] joins the facts about
// a run from a log directory and from the server.
package disk
