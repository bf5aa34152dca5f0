// Package evidence recognizes errors in a process's output, such as a Python traceback, a panic, or
// glibc's message before it aborts. An exit code shows how a process ended. The output often shows
// why, and does so earlier.
//
// A [Scanner] reads the lines of one stream. It looks for the starts of errors listed in [rules],
// and reads the remaining lines of multi-line errors. Because programs also print errors that they
// survive, [Choose] picks the one that has ended or is about to end the process.
//
// An error that mentions a lost peer, such as "connection closed by peer", results from an error in
// another process. So a process with such an error is not the root cause if another process printed
// another kind of error.
package evidence
