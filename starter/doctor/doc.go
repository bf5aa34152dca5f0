// Package doctor finds what is wrong with a host, and with its server, before a run does.
//
// Callers gather the facts; [ReadHost] gathers those about the kernel, from files below a root.
// The rules are pure: facts in, [Finding]s out. Each finding has one line for the fact and,
// unless all is well, one for the remedy.
//
// [Examine] makes checks at the same time, each within a bound. A check that does not answer is
// a finding too, so none is left out.
package doctor
