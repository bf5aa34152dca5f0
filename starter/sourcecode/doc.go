// Package sourcecode records the source code with which a run was started: the git work tree's
// commit and branch, and the names and digests of the files that differ from the commit.
//
// [Begin] queries git in the background while the command connects to the server. A start waits
// for the answer until half a second after Begin, and omits the rest with a [Source.Note]. A
// directory outside a work tree costs nothing.
//
// The source is kept in the run's history, as an argument that the workflow ignores. It is
// encoded like the spec, and adds no cost to hosts or lists of runs.
package sourcecode
