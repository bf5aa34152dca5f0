// Package stacktree compares what the ranks of a run are doing, and finds those that differ.
// It is pure: stacks come in, and classes and a sentence come out.
//
// A [Stack] is the stack of one thread of one rank. A [Tree] has the stacks of many ranks as a
// prefix tree, like LLNL's STAT: ranks that are in the same place share its nodes. [Merge] is
// associative and commutative, so trees of hosts can be merged anywhere and in any order.
// [Tree.Fit] bounds a tree in bytes before it travels.
//
// [Explain] makes classes of a tree. A class consists of the ranks that wait for the same
// thing, or that run, in the same lines of the user's program: the frames of libraries and the
// kernel below are left out. The table in waits.txt maps functions to what they wait for.
//
// # Who holds the others up
//
// A stack shows where a rank is, but not whether it makes progress. [Explain] names ranks only
// by these rules, and otherwise says that it cannot tell:
//
//  1. Some ranks wait for others, and no more than as many do not. The latter are named.
//  2. All wait for others, and more than half of them in the same collective and line. The
//     rest are named: they are in another collective, or in another line.
//  3. None waits for another, at least three quarters and at least three wait in one place,
//     and the rest are elsewhere. The rest are named.
//
// Ranks that have ended count as not waiting. Ranks whose stacks are unknown, or have no frames
// of their program, are named as unknown if all others wait.
package stacktree
