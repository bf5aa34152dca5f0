// Package doctor finds what is wrong with a host, and with its server, before a run does.
//
// Callers gather the facts; [ReadHost] gathers those about the kernel from files under a root.
// The rules are pure functions from facts to [Finding]s. Each finding has one line for the fact
// and, unless all is well, one for the remedy.
//
// [Examine] makes checks concurrently, each with a time limit. A check that does not answer is
// also a finding, so no check is omitted.
package doctor
