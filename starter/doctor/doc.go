// Package doctor says what is wrong with a host, and with its server, before a run finds out.
//
// Facts are gathered by whoever asks: those of the kernel by [ReadHost], from files below a
// root. The rules are pure: facts in, [Finding]s out. Each finding has one line that says
// what, and unless all is well one that says what to do.
//
// [Examine] makes checks at the same time, each within a bound. One that does not answer is
// a finding itself: none is left out.
package doctor
