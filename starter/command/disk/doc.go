// Package disk implements the command that removes ended runs. [pastRun] joins the facts about a
// run from a log directory and from the server.
package disk
