// Package account gathers all there is to say of a run, compares what there is of two, and
// keeps it in a file.
//
// An [Account] is made of what three know: the server has the status, the result, the spec and
// the history, from which the [Phase]s are; the host of each task has how its process was
// started (see [tasklog.Start]), and its last lines. The latter are there where the log
// directory can be read, and left out elsewhere.
//
// # The file
//
// [Pack] writes a tar file with gzip, and [Import] unpacks one below a directory:
//
//	manifest.json   what it is, of which version, and the name and size of each file
//	account.json    the Account, with the result and the exits
//	history.json    the histories, in the JSON of Temporal
//	logs/attempt_<n>/<rank>/...   the output, as package tasklog has it; where wanted
//
// An import trusts nothing in it. It reads all of the file twice, and only what holds against
// the manifest and the limits in the first pass is written in the second: names of this form
// only, regular files only, of the size that the manifest says. What it unpacks appears by a
// rename, and whoever reads it later takes no path from it: logs are those beside the account.
package account
