// Package source records which source code a run was started with: the commit and the branch of
// the git work tree, and the names and digests of the files that differ from the commit.
//
// [Begin] asks git in the background, while the command connects to the server. A start waits for
// the answer half a second at most, counted from there, and leaves out the rest with a
// [Source.Note]. A directory that is not in a work tree costs nothing.
//
// It is kept in the history of the run, as an argument of the workflow that the workflow ignores:
// it is encoded like the spec, and costs neither hosts nor lists of runs anything.
package source
