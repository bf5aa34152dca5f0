package markdown

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"github.com/clusterrun/clusterrun/tests/must"
)

// node is a node from a parser for GitHub's Markdown, which the Web UI also uses.
type node struct {
	kind, text, target string
	children           []node
}

func parse(source string) node {
	b := []byte(source)
	return read(goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(b)), b)
}

func read(n ast.Node, source []byte) node {
	out := node{kind: n.Kind().String()}
	if l, ok := n.(*ast.Link); ok {
		out.target = string(l.Destination)
	}
	if n.Type() == ast.TypeBlock && !n.HasChildren() {
		out.text = string(n.Lines().Value(source))
	}
	if t, ok := n.(*ast.Text); ok {
		out.text = string(t.Value(source))
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		out.children = append(out.children, read(c, source))
	}
	return out
}

// said returns a node's text if it contains only text and code.
func (n node) said(t *testing.T) string {
	t.Helper()
	said := n.text
	for _, c := range n.children {
		require.Contains(t, []string{"Text", "CodeSpan"}, c.kind)
		said += c.said(t)
	}
	return said
}

// only returns the only child of that kind.
func (n node) only(t *testing.T, kind string) node {
	t.Helper()
	require.Len(t, n.children, 1, "%+v", n)
	require.Equal(t, kind, n.children[0].kind)
	return n.children[0]
}

func (n node) kinds() (kinds []string) {
	for _, c := range n.children {
		kinds = append(kinds, c.kind)
	}
	return kinds
}

// A parser shows any text unchanged, in its place.
func FuzzParsed(f *testing.F) {
	for _, text := range []string{
		"", "worker-1", "```", "a\n````\nb", "~~~", "\t```\n", "   ```", "<b>x</b>", "http://a.example", "a@b.example", "[a](b)", "![a](b)", "1. a", "# a", "- a", "> a", "    a",
		"a  ", "\\", "&amp;", "|", "a|b", "`", "``", " `", "a\r\nb", "[a]: http://b", "[^1]", "~a~", "__init__", "a\\`b", "\u2028", "***", "=", "---", "<!--", "(a)", "a b/c?d#e%f",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const most = 10_000
		if len(text) > most/10 {
			return
		}
		doc := parse("before" + Block(text, most) + "after")
		require.Equal(t, []string{"Paragraph", "FencedCodeBlock", "Paragraph"}, doc.kinds())
		assert.Equal(t, visible(strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n\t"), strings.TrimSuffix(doc.children[1].text, "\n"))

		want := visible(text, "")
		if longest(want) > 3 {
			want = strings.ReplaceAll(want, "`", "ˋ")
		}
		if strings.Trim(want, " ") == "" {
			want = strings.Repeat("␠", len(want))
		}
		assert.Equal(t, "before "+want+" after", parse("before "+Inline(text, most)+" after").only(t, "Paragraph").said(t))

		name := strings.Trim(cut(strings.ReplaceAll(want, "|", "¦"), maxName), " ") // spaces around a cell's text are not visible
		table := parse("| a | b |\n| --- | --- |\n| "+Cell(text)+" | after |\n").only(t, east.KindTable.String())
		require.Len(t, table.children, 2)
		row := table.children[1]
		require.Equal(t, []string{"TableCell", "TableCell"}, row.kinds())
		assert.Equal(t, name, strings.Trim(row.children[0].said(t), " "))
		assert.Equal(t, "after", row.children[1].said(t))

		for _, made := range []string{Workflow("name", text, text, text), Below("name", text, text)} {
			link := parse(made).only(t, "Paragraph").only(t, "Link")
			assert.Equal(t, "name", link.said(t))
			target := must.Get(url.Parse(link.target))(t)
			parts := strings.Split(target.EscapedPath(), "/")
			require.Greater(t, len(parts), 3)
			namespace := must.Get(url.PathUnescape(parts[2]))(t)
			assert.Equal(t, text, namespace)
			assert.Empty(t, target.Fragment)
		}
	})
}
