package help

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"github.com/clusterrun/clusterrun/workflows/text/wrap"
)

const codeIndent = "    "

// Render returns Markdown as text of at most width columns; only code may be wider. With
// colour, headings and code are bold, as on a terminal; without it, code keeps its marks.
func Render(markdown string, width int, colour bool) string {
	source := []byte(markdown)
	p := &page{source: source, width: max(width, 20), colour: colour}
	// goldmark's default parser would include tables, whose package costs half a millisecond at
	// the start of every command.
	p.blocks(parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	).Parse(text.NewReader(source)), "")
	return strings.ReplaceAll(p.out.String(), plain+" "+bold, " ")
}

type page struct {
	out    strings.Builder
	source []byte
	width  int
	colour bool
}

// blocks writes the blocks of a node, with an empty line between two unless they belong to a
// tight list.
func (p *page) blocks(parent ast.Node, indent string) {
	list, inList := parent.Parent().(*ast.List)
	tight := inList && list.IsTight
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n != parent.FirstChild() && !tight {
			p.out.WriteByte('\n')
		}
		p.block(n, indent)
	}
}

func (p *page) block(n ast.Node, indent string) {
	switch n := n.(type) {
	case *ast.Heading:
		p.paragraph(p.bold(p.inline(n, prose)), indent)
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		for i := range n.Lines().Len() {
			line := n.Lines().At(i)
			p.out.WriteString(strings.TrimRight(indent+codeIndent+string(line.Value(p.source)), " \n") + "\n")
		}
	case *ast.List:
		p.list(n, indent)
	case *ast.Blockquote:
		p.blocks(n, indent+"  ")
	case *ast.ThematicBreak, *ast.HTMLBlock:
	default:
		if n.Lines().Len() > 1 && n.Lines().Value(p.source)[0] == '|' {
			p.table(p.inline(n, table), indent)
			return
		}
		p.paragraph(p.inline(n, prose), indent)
	}
}

func (p *page) list(list *ast.List, indent string) {
	number := list.Start
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "- "
		if list.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		// The mark replaces the indentation of the item's first line.
		inner := page{source: p.source, width: p.width, colour: p.colour}
		inner.blocks(item, indent+strings.Repeat(" ", len(mark)))
		p.out.WriteString(indent + mark + strings.TrimPrefix(inner.out.String(), indent+strings.Repeat(" ", len(mark))))
		if !list.IsTight && item.NextSibling() != nil {
			p.out.WriteByte('\n')
		}
	}
}

// table writes a table. It wraps the widest columns until the table fits.
func (p *page) table(source, indent string) {
	var rows [][]string
	var widths []int
	for i, row := range strings.Split(source, "\n") {
		if i == 1 {
			continue // the dashes below the head
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), table.cell), table.cell)
		for j, c := range cells {
			cells[j] = strings.TrimSpace(c)
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], columns(cells[j]))
		}
		rows = append(rows, cells)
	}
	const gap = 2
	total := len(indent) - gap
	for _, w := range widths {
		total += w + gap
	}
	for ; total > p.width; total-- {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= 1 {
			break
		}
		widths[widest]--
	}
	for i, cells := range rows {
		lines := make([][]string, len(widths))
		most := 0
		for j := range cells {
			lines[j] = wrap.Columns(cells[j], widths[j], columns)
			most = max(most, len(lines[j]))
		}
		for k := range most {
			line := indent
			for j, w := range widths {
				cell := ""
				if k < len(lines[j]) {
					cell = lines[j][k]
				}
				pad := strings.Repeat(" ", max(0, w-columns(cell))+gap)
				if i == 0 && cell != "" {
					cell = p.bold(cell)
				}
				line += cell + pad
			}
			p.out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
}

func (p *page) paragraph(s, indent string) {
	for _, line := range wrap.Columns(s, p.width-len(indent), columns) {
		p.out.WriteString(indent + line + "\n")
	}
}

// marks are the separators between the lines and between the cells of a table.
type marks struct{ line, cell string }

var (
	prose = marks{line: " ", cell: "|"}
	table = marks{line: "\n", cell: "\x00"}
)

// inline returns the text of a node, with the marks m.
func (p *page) inline(parent ast.Node, m marks) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			b.WriteString(unescaped(string(n.Segment.Value(p.source)), m))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteString(m.line)
			}
		case *ast.CodeSpan:
			b.WriteString(p.code(n, m))
		case *ast.Link:
			words := p.inline(n, m)
			b.WriteString(words)
			if to := string(n.Destination); strings.Contains(to, "://") && to != words {
				b.WriteString(" <" + to + ">")
			}
		case *ast.AutoLink:
			b.Write(n.URL(p.source))
		case *ast.RawHTML:
		default:
			b.WriteString(p.inline(n, m))
		}
	}
	return b.String()
}

func (p *page) code(n *ast.CodeSpan, m marks) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(p.source))
		}
	}
	s := strings.ReplaceAll(b.String(), "\n", " ")
	if m == table {
		s = strings.ReplaceAll(s, `\|`, "|") // a cell needs it, also in code
	}
	if p.colour {
		return p.bold(s)
	}
	return "`" + s + "`"
}

// unescaped removes the backslashes before punctuation, which the parser keeps, and replaces
// bars without one.
func unescaped(s string, m marks) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", s[i+1]) >= 0:
			i++
			b.WriteByte(s[i])
		case s[i] == '|':
			b.WriteString(m.cell)
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

const bold, plain = "\x1b[1m", "\x1b[0m"

// bold marks each word separately, so that lines may break between two.
func (p *page) bold(s string) string {
	if !p.colour {
		return s
	}
	words := strings.Split(s, " ")
	for i, w := range words {
		if w != "" && !strings.HasPrefix(w, bold) {
			words[i] = bold + w + plain
		}
	}
	return strings.Join(words, " ")
}

// columns returns the width of a text on a terminal.
func columns(s string) int {
	s = strings.ReplaceAll(strings.ReplaceAll(s, bold, ""), plain, "")
	return utf8.RuneCountInString(s)
}
