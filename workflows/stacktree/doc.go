// Package stacktree compares what a run's ranks are doing, and finds those that differ. It is
// pure: it turns stacks into classes and a sentence.
//
// A [Stack] is one thread's stack in one rank. A [Tree] is a prefix tree of many ranks' stacks,
// like LLNL's STAT. Ranks in the same place share nodes. [Merge] is associative and commutative, so
// hosts' trees can be merged anywhere and in any order. [Tree.Fit] limits a tree in bytes before it
// is sent.
//
// [Explain] divides a tree into classes. A class consists of ranks that are waiting for the same
// thing, or running, in the same lines of user code, ignoring library and kernel frames. The table
// in waits.txt maps functions to what they wait for.
//
// # Who holds up the rest
//
// A stack shows where a rank is, but not whether it makes progress. [Explain] names ranks only by
// these rules, and otherwise reports that the stacks do not show it:
//
//  1. Some ranks wait for other ranks, and at most as many do not. The latter are named.
//  2. All wait for other ranks, and more than half in the same collective and line. The
//     rest, in another collective or line, are named.
//  3. None waits for another, at least three quarters and at least three wait in one place,
//     and the rest are elsewhere. The rest are named.
//
// Ended ranks count as not waiting. Ranks without a known stack, or without frames of their
// program, are named as unknown if all other ranks are waiting.
package stacktree
