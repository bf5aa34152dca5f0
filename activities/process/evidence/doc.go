// Package evidence recognizes errors in the output of a process: the traceback of a Python
// program, a panic, a message of glibc before it aborts. Exit codes tell how a process ended;
// its output often tells why, and earlier.
//
// A [Scanner] takes the lines of one stream. It looks for the beginnings of errors that [rules]
// lists, and reads the further lines of an error that has several. [Choose] returns the error
// that ended the process, or is about to: programs also print errors that they survive.
//
// An error that speaks of a lost peer, such as "connection closed by peer", is the effect of an
// error in another process. So a process whose error is of that kind is not the root cause if
// another process has printed an error of its own.
package evidence
