package stacktree_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// stackOf turns bytes into a stack with few different functions, so that stacks share prefixes.
func stackOf(raw []byte) stacktree.Stack {
	s := stacktree.Stack{}
	for _, b := range raw {
		kinds := []stacktree.Kind{stacktree.Python, stacktree.Native, stacktree.Kernel, stacktree.Unknown, stacktree.Ended}
		functions := []string{"all_reduce", "step", "futex", "MPI_Recv", "", "is away"}
		files := []string{"/root/train.py", "torch/distributed/distributed_c10d.py", "/lib/libc.so.6", ""}
		s = append(s, stacktree.Frame{Kind: kinds[b%5], Function: functions[b/5%6], File: files[b/30%4], Line: int(b / 120)})
	}
	return s
}

// treesOf cuts bytes into stacks of consecutive ranks, and divides them into trees of three
// hosts.
func treesOf(raw []byte) (trees [3]stacktree.Tree, ranks int) {
	for len(raw) > 0 {
		n := min(int(raw[0]%7), len(raw)-1)
		host := int(raw[0]/7) % 3
		trees[host] = stacktree.Merge(trees[host], stacktree.Of(ranks, stackOf(raw[1:1+n])))
		ranks++
		raw = raw[1+n:]
	}
	return trees, ranks
}

// FuzzMerge checks that trees can be merged in any order and grouping, survive JSON, keep all
// ranks when they are reduced, and can be explained.
func FuzzMerge(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		raw := make([]byte, r.IntN(200))
		for i := range raw {
			raw[i] = byte(r.IntN(256))
		}
		f.Add(raw, uint16(r.IntN(2000)))
	}
	f.Fuzz(func(t *testing.T, raw []byte, bound uint16) {
		trees, ranks := treesOf(raw)
		a, b, c := trees[0], trees[1], trees[2]
		all := stacktree.Merge(a, b, c)
		require.Equal(t, all, stacktree.Merge(stacktree.Merge(a, b), c))
		require.Equal(t, all, stacktree.Merge(a, stacktree.Merge(b, c)))
		require.Equal(t, all, stacktree.Merge(c, a, b))
		require.Equal(t, all, stacktree.Merge(all, all), "a tree that comes twice counts once")
		require.Equal(t, ranks, all.Ranks().Len())
		text := must.Get(json.Marshal(all))(t)
		back := must.JSON[stacktree.Tree](t, text)
		require.Equal(t, all, back)
		small := all.Fit(int(bound))
		require.Equal(t, all.Ranks(), small.Ranks())
		require.Equal(t, ranks, all.Without(a.Ranks()).Ranks().Len()+a.Ranks().Len())
		for _, tree := range []stacktree.Tree{all, small} {
			found := stacktree.Explain(tree, func(int) string { return "" })
			require.Equal(t, ranks, found.Total)
			n := 0
			for _, class := range found.Classes {
				n += class.Count
				require.NotEmpty(t, class.Does())
			}
			require.Equal(t, ranks, n)
			require.NotEmpty(t, found.Sentence)
			require.LessOrEqual(t, found.Outliers.Len(), ranks)
		}
	})
}

func TestADeepStackKeepsItsEnds(t *testing.T) {
	s := make(stacktree.Stack, 5000)
	for i := range s {
		s[i] = stacktree.Frame{Kind: stacktree.Python, Function: "recurse", File: "/root/a.py", Line: i}
	}
	depth, last := 0, stacktree.Node{}
	for nodes := stacktree.Of(0, s).Roots; len(nodes) > 0; nodes = last.Calls {
		last = nodes[0]
		depth++
	}
	assert.Equal(t, 97, depth)
	assert.Equal(t, 4999, last.Line)
}

func TestRanks(t *testing.T) {
	assert.Equal(t, "0-3,7", stacktree.RanksOf(3, 0, 7, 2, 1, 1).String())
	assert.Equal(t, 5, stacktree.RanksOf(3, 0, 7, 2, 1).Len())
	assert.True(t, stacktree.RanksOf(3, 0, 7, 2, 1).Has(2))
	assert.False(t, stacktree.RanksOf(3, 0, 7, 2, 1).Has(5))
	for _, bad := range []string{"x", "3-1", "-1", "1-", "1-2-3"} {
		var r stacktree.Ranks
		assert.Error(t, r.UnmarshalText([]byte(bad)), bad)
	}
}
