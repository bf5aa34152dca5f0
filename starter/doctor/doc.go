// Package doctor finds problems of a host and its server before they affect a run.
//
// Callers gather the facts; [ReadHost] gathers those about the kernel from files under a root. The
// rules are pure functions from facts to [Finding]s. Each finding has one line for the fact and, if
// there is a problem, one for the remedy.
//
// [Examine] makes checks concurrently, each with a time limit. A check that does not answer is
// also a finding, so no check is omitted.
package doctor
