// Package evidence recognizes errors in a process's output: a Python traceback, a panic, a message
// from glibc before it aborts. Exit codes show how a process ended; its output often shows why, and
// earlier.
//
// A [Scanner] reads the lines of one stream. It looks for the starts of errors listed in [rules],
// and reads the remaining lines of multi-line errors. [Choose] returns the error that ended the
// process or is about to, since programs also print errors that they survive.
//
// An error that mentions a lost peer, such as "connection closed by peer", results from an error in
// another process. So a process with such an error is not the root cause if another process printed
// another kind of error.
package evidence
