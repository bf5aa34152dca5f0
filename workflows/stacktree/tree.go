package stacktree

import "slices"

// Tree is a prefix tree of ranks' stacks. The zero value is empty. Each rank should occur only
// once.
type Tree struct {
	Roots []Node `json:"roots,omitempty"`
}

// Node is a frame that some stacks share, with the inner frames of these stacks.
type Node struct {
	Frame
	// Ranks are the ranks with this as their innermost frame.
	Ranks Ranks `json:"ranks,omitempty"`
	// Calls are the inner frames, in the order of their fields.
	Calls []Node `json:"calls,omitempty"`
}

// Of returns a tree with one rank. An empty stack counts as unknown.
func Of(rank int, s Stack) Tree { return treeOf(RanksOf(rank), s) }

func treeOf(ranks Ranks, s Stack) Tree {
	if len(s) == 0 {
		s = Stack{{Kind: Unknown, Function: "has no stack"}}
	}
	s = s.bounded()
	n := Node{Frame: s[len(s)-1], Ranks: ranks}
	for _, f := range slices.Backward(s[:len(s)-1]) {
		n = Node{Frame: f, Calls: []Node{n}}
	}
	return Tree{Roots: []Node{n}}
}

// Merge returns a tree with the stacks from all trees, without modifying them.
func Merge(trees ...Tree) Tree {
	lists := make([][]Node, len(trees))
	for i, t := range trees {
		lists[i] = t.Roots
	}
	return Tree{Roots: mergeNodes(lists)}
}

func mergeNodes(lists [][]Node) []Node {
	all := slices.Concat(lists...)
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b Node) int { return a.compare(b.Frame) })
	var out []Node
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].Frame == all[i].Frame {
			j++
		}
		var ranks Ranks
		calls := make([][]Node, 0, j-i)
		for _, n := range all[i:j] {
			ranks = append(ranks, n.Ranks...)
			calls = append(calls, n.Calls)
		}
		out = append(out, Node{Frame: all[i].Frame, Ranks: ranks.normal(), Calls: mergeNodes(calls)})
		i = j
	}
	return out
}

// leaf is a stack in the tree and its ranks.
type leaf struct {
	Stack
	Ranks
}

// leaves returns the tree's distinct stacks.
func (t Tree) leaves() []leaf {
	var out []leaf
	var walk func(above Stack, nodes []Node)
	walk = func(above Stack, nodes []Node) {
		for _, n := range nodes {
			s := append(slices.Clip(above), n.Frame)
			if len(n.Ranks) > 0 {
				out = append(out, leaf{s, n.Ranks})
			}
			walk(s, n.Calls)
		}
	}
	walk(nil, t.Roots)
	return out
}

// Ranks returns the tree's ranks.
func (t Tree) Ranks() Ranks {
	var all Ranks
	for _, l := range t.leaves() {
		all = append(all, l.Ranks...)
	}
	return all.normal()
}

// Without returns the tree without some ranks.
func (t Tree) Without(ranks Ranks) Tree {
	var kept []Tree
	for _, l := range t.leaves() {
		if rest := l.Ranks.minus(ranks); len(rest) > 0 {
			kept = append(kept, treeOf(rest, l.Stack))
		}
	}
	return Merge(kept...)
}
