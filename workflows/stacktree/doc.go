// Package stacktree compares what a run's ranks are doing, and finds those that differ. It is pure,
// and turns stacks into classes and a sentence.
//
// A [Stack] is one thread's stack in one rank. A [Tree] is a prefix tree of many ranks' stacks,
// like LLNL's STAT. Ranks in the same place share nodes. [Merge] is associative and commutative, so
// hosts' trees can be merged anywhere and in any order. [Tree.Fit] limits a tree in bytes before it
// is sent.
//
// [Explain] divides a tree into classes. A class consists of ranks that are in the same lines of
// user code and are either running or waiting for the same thing. Library and kernel frames are
// ignored. The table in waits.txt maps functions to what they wait for.
//
// # Who holds up the rest
//
// A stack shows where a rank is, but not whether it makes progress. [Explain] therefore names ranks
// only if one of these rules applies, and otherwise reports that the stacks do not show the cause:
//
//  1. Some ranks are waiting for other ranks, and at most as many ranks are not. The ranks that are
//     not waiting are named.
//  2. All ranks are waiting for other ranks, more than half of them in the same collective and
//     line. The rest, which are in another collective or line, are named.
//  3. No rank is waiting for another. At least three quarters of the ranks, and at least three, are
//     waiting in one place. The rest, which are elsewhere, are named.
//
// Ended ranks count as not waiting. Ranks without a known stack, or without frames of their
// program, are named as unknown if all other ranks are waiting.
package stacktree
