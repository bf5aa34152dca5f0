package stacktree_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// TestScripts runs testdata: stacks of ranks, and the findings about them.
// `go test -run Scripts -rewrite` rewrites the answers.
//
// A script has the directives
//
//	explain          explains the stacks
//	tree             prints the prefix tree
//	motion           names the ranks that have moved in the stacks below the line "later"
//	fit BYTES        explains the tree reduced to that size
//
// each with stacks on its lines: RANKS [@HOST]: FRAME | FRAME …, outermost frame first. %d is
// the number of the rank. A frame is KIND FUNCTION [FILE[:LINE]], with ~ for a space.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			input, later, _ := strings.Cut(d.Input, "later\n")
			tree, hosts := parse(t, input)
			var b strings.Builder
			switch d.Cmd {
			case "explain":
				require.NoError(t, stacktree.Explain(tree, hosts).Write(&b))
			case "motion":
				second, _ := parse(t, later)
				fmt.Fprintln(&b, stacktree.Compare(tree, second, 2*time.Second))
			case "tree":
				show(&b, tree.Roots, 0)
			case "fit":
				bytes := must.Get(strconv.Atoi(d.CmdArgs[0].Key))(t)
				small := tree.Fit(bytes)
				raw := must.Get(json.Marshal(small))(t)
				require.LessOrEqual(t, len(raw), bytes)
				require.Equal(t, tree.Ranks(), small.Ranks())
				require.NoError(t, stacktree.Explain(small, hosts).Write(&b))
			default:
				d.Fatalf(t, "no such directive")
			}
			return b.String()
		})
	})
}

func show(b *strings.Builder, nodes []stacktree.Node, depth int) {
	for _, n := range nodes {
		fmt.Fprintf(b, "%s%s", strings.Repeat("  ", depth), n.Frame)
		if len(n.Ranks) > 0 {
			fmt.Fprintf(b, " (%s)", n.Ranks)
		}
		b.WriteByte('\n')
		show(b, n.Calls, depth+1)
	}
}

func parse(t *testing.T, input string) (stacktree.Tree, func(int) string) {
	t.Helper()
	var trees []stacktree.Tree
	hosts := map[int]string{}
	for line := range strings.Lines(input) {
		head, text, ok := strings.Cut(strings.TrimSpace(line), ": ")
		require.True(t, ok, line)
		words := strings.Fields(head)
		var ranks stacktree.Ranks
		require.NoError(t, ranks.UnmarshalText([]byte(words[0])))
		for _, rank := range ranks.First(ranks.Len()) {
			for _, w := range words[1:] {
				hosts[rank] = strings.TrimPrefix(w, "@")
			}
			trees = append(trees, stacktree.Of(rank, parseStack(t, strings.ReplaceAll(text, "%d", strconv.Itoa(rank)))))
		}
	}
	slices.Reverse(trees) // the order does not matter
	return stacktree.Merge(trees...), func(rank int) string { return hosts[rank] }
}

func parseStack(t *testing.T, text string) stacktree.Stack {
	t.Helper()
	var s stacktree.Stack
	for part := range strings.SplitSeq(text, " | ") {
		words := strings.Fields(part)
		require.NotEmpty(t, words)
		f := stacktree.Frame{Kind: stacktree.Kind(words[0])}
		if len(words) > 1 {
			f.Function = strings.ReplaceAll(words[1], "~", " ")
		}
		if len(words) > 2 {
			file, line, some := strings.Cut(words[2], ":")
			f.File = file
			if some {
				n := must.Get(strconv.Atoi(line))(t)
				f.Line = n
			}
		}
		s = append(s, f)
	}
	return s
}
