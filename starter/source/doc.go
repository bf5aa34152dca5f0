// Package source records which source code a run was started with: the commit and the branch of
// the git work tree, what was changed since the commit, and the names of untracked files.
//
// [Begin] asks git in the background, while the command connects to the server. A start waits for
// the answer half a second at most, counted from there, and leaves out the rest with a
// [Source.Note]. A directory that is not in a work tree costs nothing.
//
// The difference is bounded: of very large ones, whole files are left out, the largest first.
// String literals that are assigned to names of secrets, values that look like
// tokens, and files that usually have secrets are replaced by a note, so the difference is for
// reading, and may not apply.
//
// It is kept in the history of the run, as arguments of the workflow that the workflow ignores:
// it is encoded like the spec, and costs neither hosts nor lists of runs anything.
package source
