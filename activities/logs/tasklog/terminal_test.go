package tasklog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// terminal is a small terminal: writing to it moves its cursor, wraps, scrolls and colours like a
// real one. An unknown sequence counts as the writer's error.
type terminal struct {
	mu            sync.Mutex
	width, height int
	scrolled      []row // off the top
	rows          []row
	x, y          int
	on            map[int]string // the SGR codes in force, by group
	pen           string         // the codes in force, as text
	link          string
	noWrap        bool
	writes        int
	rest          string // an unfinished character or sequence
	unknown       []string
}

type cell struct {
	r         rune
	pen, link string
}

type row []cell

func newTerminal(width, height int) *terminal {
	return &terminal{width: width, height: height, rows: make([]row, height)}
}

func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++
	text := t.rest + string(b)
	for text != "" {
		n := t.take(text)
		if n == 0 {
			break
		}
		text = text[n:]
	}
	t.rest = text
	return len(b), nil
}

// take executes the first element of the text, and returns its length, or 0 if it is incomplete.
func (t *terminal) take(text string) int {
	switch text[0] {
	case '\n': // the tty makes it CR LF
		t.x = 0
		t.down()
		return 1
	case '\r':
		t.x = 0
		return 1
	case '\b':
		t.x = max(0, t.x-1)
		return 1
	case '\a':
		return 1
	case '\t':
		t.x = min(t.width-1, t.x+8-t.x%8)
		return 1
	case 0x1b:
		return t.sequence(text)
	}
	if text[0] < ' ' {
		t.unknown = append(t.unknown, strconv.Quote(text[:1]))
		return 1
	}
	if !utf8.FullRuneInString(text) {
		return 0
	}
	r, n := utf8.DecodeRuneInString(text)
	if r >= 0x80 && r < 0xa0 {
		t.unknown = append(t.unknown, strconv.Quote(text[:n]))
		return n
	}
	t.put(r)
	return n
}

func (t *terminal) put(r rune) {
	if t.x >= t.width {
		if t.noWrap {
			t.x = t.width - 1
		} else {
			t.x = 0
			t.down()
		}
	}
	line := t.rows[t.y]
	for len(line) <= t.x {
		line = append(line, cell{r: ' '})
	}
	line[t.x] = cell{r, t.pen, t.link}
	t.rows[t.y] = line
	t.x++
}

func (t *terminal) down() {
	if t.y++; t.y < t.height {
		return
	}
	t.y--
	t.scrolled = append(t.scrolled, t.rows[0])
	t.rows = append(t.rows[1:], row{})
}

// about lists groups of codes that exclude each other. A group is identified by its first code, and
// its last one switches it off.
var about = [][]int{
	{1, 22}, {2, 22}, {3, 20, 23}, {4, 21, 24}, {5, 6, 25}, {7, 27}, {8, 28}, {9, 29},
	{11, 12, 13, 14, 15, 16, 17, 18, 19, 10}, {51, 52, 54}, {53, 55}, {58, 59}, {73, 74, 75},
	{30, 31, 32, 33, 34, 35, 36, 37, 38, 90, 91, 92, 93, 94, 95, 96, 97, 39},
	{40, 41, 42, 43, 44, 45, 46, 47, 48, 100, 101, 102, 103, 104, 105, 106, 107, 49},
}

func (t *terminal) attributes(parameters string) {
	if t.on == nil {
		t.on = map[int]string{}
	}
	list := strings.Split(parameters, ";")
	for i := 0; i < len(list); i++ {
		p := list[i]
		number, sub, _ := strings.Cut(p, ":")
		code, _ := strconv.Atoi(number)
		if (code == 38 || code == 48 || code == 58) && p == number && i+1 < len(list) {
			end := min(len(list)-1, i+map[string]int{"5": 2, "2": 4}[list[i+1]])
			p, i = strings.Join(list[i:end+1], ";"), end
		}
		if code == 0 {
			clear(t.on)
		}
		for _, same := range about {
			switch off := same[len(same)-1]; {
			case code == off, code == 4 && same[0] == 4 && sub == "0":
				delete(t.on, same[0])
			case slices.Contains(same, code):
				t.on[same[0]] = p
			}
		}
	}
	t.pen = ""
	for _, key := range slices.Sorted(maps.Keys(t.on)) {
		t.pen = strings.TrimPrefix(t.pen+";"+t.on[key], ";")
	}
}

func (t *terminal) sequence(text string) int {
	if len(text) < 2 {
		return 0
	}
	if text[1] == ']' {
		end := strings.Index(text, "\x1b\\")
		if end < 0 {
			return 0
		}
		if parts := strings.SplitN(text[:end], ";", 3); len(parts) == 3 && parts[0] == "\x1b]8" {
			t.link = parts[2]
		} else {
			t.unknown = append(t.unknown, strconv.Quote(text[:end]))
		}
		return end + 2
	}
	if text[1] != '[' {
		t.unknown = append(t.unknown, strconv.Quote(text[:2]))
		return 2
	}
	end := 2
	for end < len(text) && (text[end] < '@' || text[end] > '~') {
		end++
	}
	if end == len(text) {
		return 0
	}
	parameters := text[2:end]
	n, _ := strconv.Atoi(parameters)
	switch key := parameters + text[end:end+1]; {
	case key == "?7l":
		t.noWrap = true
	case key == "?7h":
		t.noWrap = false
	case key == "K":
		t.rows[t.y] = t.rows[t.y][:min(t.x, len(t.rows[t.y]))]
	case key == "J":
		t.rows[t.y] = t.rows[t.y][:min(t.x, len(t.rows[t.y]))]
		for y := t.y + 1; y < t.height; y++ {
			t.rows[y] = nil
		}
	case text[end] == 'A' && n > 0:
		t.y = max(0, t.y-n)
	case text[end] == 'm':
		t.attributes(parameters)
	default:
		t.unknown = append(t.unknown, strconv.Quote(text[:end+1]))
	}
	return end + 1
}

// text returns all lines ever shown.
func (t *terminal) text() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for _, line := range append(append([]row{}, t.scrolled...), t.rows...) {
		var b strings.Builder
		for _, c := range line {
			b.WriteRune(c.r)
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// pens shows a line with its parts' attributes: "plain{31}red{}plain".
func (t *terminal) pens(line int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := append(append([]row{}, t.scrolled...), t.rows...)
	var b strings.Builder
	pen := ""
	for _, c := range all[line] {
		if now := c.pen + c.link; now != pen {
			fmt.Fprintf(&b, "{%s}", now)
			pen = now
		}
		b.WriteRune(c.r)
	}
	return b.String()
}
