package stacktree

import (
	"cmp"
	"encoding/json"
	"slices"
)

const (
	// HostBytes limits a host's tree, and RunBytes a run's tree. Together with file names, a tree
	// must fit into a Temporal payload.
	HostBytes = 32 << 10
	RunBytes  = 256 << 10
)

// Fit drops the least useful parts of the tree until its JSON fits into the given number of bytes.
// In this order, it drops library frames, line numbers, all frames except the waiting function, the
// innermost frame and the user's innermost frame, and finally the rarest stacks, which become
// unknown.
func (t Tree) Fit(bytes int) Tree {
	for _, coarser := range []func(Stack) Stack{
		func(s Stack) Stack { return s },
		withoutLibraries,
		func(s Stack) Stack { return withoutLines(withoutLibraries(s)) },
		func(s Stack) Stack { return innermost(withoutLines(withoutLibraries(s))) },
	} {
		t = t.mapped(coarser)
		if t.size() <= bytes {
			return t
		}
	}
	leaves := t.leaves()
	slices.SortStableFunc(leaves, func(a, b leaf) int { return cmp.Compare(b.Ranks.Len(), a.Ranks.Len()) })
	for keep := len(leaves) / 2; ; keep /= 2 {
		var kept []Tree
		for _, l := range leaves[:keep] {
			kept = append(kept, treeOf(l.Ranks, l.Stack))
		}
		var rest Ranks
		for _, l := range leaves[keep:] {
			rest = append(rest, l.Ranks...)
		}
		unknown := Stack{{Kind: Unknown, Function: "has a different stack, omitted for lack of space"}}
		out := Merge(append(kept, treeOf(rest.normal(), unknown))...)
		if keep == 0 || out.size() <= bytes {
			return out
		}
	}
}

func (t Tree) size() int {
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // a tree always encodes
	}
	return len(raw)
}

func (t Tree) mapped(do func(Stack) Stack) Tree {
	var all []Tree
	for _, l := range t.leaves() {
		all = append(all, treeOf(l.Ranks, do(l.Stack)))
	}
	return Merge(all...)
}

// withoutLibraries keeps the user's frames, the wait, and the innermost frame.
func withoutLibraries(s Stack) Stack {
	_, at := waitOf(s)
	return keepFrames(s, func(i int) bool {
		return i == 0 || i == at || i == len(s)-1 || s[i].userCode() || s[i].Kind == Kernel
	})
}

func withoutLines(s Stack) Stack {
	out := slices.Clone(s)
	for i := range out {
		out[i].Line = 0
	}
	return out
}

func innermost(s Stack) Stack {
	_, at := waitOf(s)
	user := len(s) - 1
	for user > 0 && !s[user].userCode() {
		user--
	}
	return keepFrames(s, func(i int) bool { return i == at || i == user || i == len(s)-1 })
}

func keepFrames(s Stack, keep func(int) bool) Stack {
	var out Stack
	for i, f := range s {
		if keep(i) {
			out = append(out, f)
		}
	}
	return out
}
