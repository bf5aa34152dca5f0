// Package fleet has the rules of a fleet: which hosts there are, which runs wait for
// room on them, in which order, and what each of them gets. It is pure: events go in,
// actions come out, and whoever feeds it carries them out.
//
// # Hosts
//
// A host worker joins with what it has ([Host]) and what runs hold there. A second living
// one of the same name is refused. One that falls silent keeps what it holds, and gets
// nothing more, until it joins again: another instance, or another boot, says what is left.
//
// # Runs
//
// A run asks for room for all of its tasks, and is granted all of it at once or nothing:
// no run holds hosts while it waits for others, so runs never wait for each other in a
// circle. The host has the last word. If it refuses, the run returns the whole grant with
// the reason, asks again with the age it had, and is not sent to that host again.
//
// # Order
//
// Priority comes first, 1 before 5, then age. The first run that does not fit, the head,
// bounds those behind it: a smaller run passes only where it cannot delay the head, because
// the head has no use for that room, or because the smaller one's max_run_time is over
// before the head could start.
package fleet
