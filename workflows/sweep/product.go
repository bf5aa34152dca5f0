package sweep

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// axis lists one parameter's values.
type axis struct {
	items []item
	count int
}

// item is a string, or a range of integers.
type item struct {
	text  string
	count int // 1 for a string
	// first is the first integer of a range, step the difference to the next one, and width the
	// number of digits to which the integers are padded with zeros.
	isRange     bool
	first, step int
	width       int
}

func (a axis) value(n int) string {
	for _, i := range a.items {
		if n < i.count {
			return i.value(n)
		}
		n -= i.count
	}
	panic("sweep: a value outside the list")
}

func (i item) value(n int) string {
	if !i.isRange {
		return i.text
	}
	return fmt.Sprintf("%0*d", i.width, i.first+n*i.step)
}

// parseProduct parses parameters with their values. Parameters are separated by spaces, and values
// by commas. Within quotes, both characters are part of a value.
func parseProduct(text string) (*Trials, error) {
	t := &Trials{count: 1}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimLeft(rest, space) {
		name, after, ok := strings.Cut(rest, "=")
		if !ok || strings.ContainsAny(name, space) {
			word, _, _ := strings.Cut(rest, " ")
			return nil, fmt.Errorf("%s: it lists no values. Write NAME=VALUE,VALUE, and quote values with spaces", spec.Quote(shorten.Text(word, 60)))
		}
		a, left, err := parseAxis(name, after)
		if err != nil {
			return nil, err
		}
		t.names, t.axes = append(t.names, name), append(t.axes, a)
		// Limit the count, so that the product cannot overflow.
		t.count = min(t.count*a.count, MaxTrials+1)
		rest = left
	}
	return t, nil
}

const space = " \t\r\n"

// parseAxis parses the values at the beginning of text, and returns the remaining text.
func parseAxis(name, text string) (a axis, rest string, err error) {
	for {
		var b strings.Builder
		quoted := false
		for text != "" && !strings.ContainsRune(space+",", rune(text[0])) {
			c := text[0]
			if c != '"' && c != '\'' {
				b.WriteByte(c)
				text = text[1:]
				continue
			}
			end := strings.IndexByte(text[1:], c)
			if end < 0 {
				return a, "", fmt.Errorf("parameter %s: the quote %c is not closed. Close it, or enclose it in quotes of the other kind", name, c)
			}
			b.WriteString(text[1 : 1+end])
			text, quoted = text[end+2:], true
		}
		i := item{text: b.String(), count: 1}
		if !quoted {
			if i.text == "" {
				return a, "", fmt.Errorf("parameter %s: a value is missing. Write '' for an empty one", name)
			}
			if i, err = parseRange(name, i.text); err != nil {
				return a, "", err
			}
		}
		a.items, a.count = append(a.items, i), min(a.count+i.count, MaxTrials+1)
		if !strings.HasPrefix(text, ",") {
			return a, text, nil
		}
		text = text[1:]
	}
}

// parseRange parses FIRST..LAST or FIRST..LAST..STEP, like a shell's braces. Any other string
// stands for itself.
func parseRange(name, text string) (item, error) {
	i := item{text: text, count: 1}
	parts := strings.Split(text, "..")
	if len(parts) < 2 || len(parts) > 3 {
		return i, nil
	}
	var numbers [3]int
	numbers[2] = 1
	for n, part := range parts {
		if !isNumber(part) { // a path such as ../data
			return i, nil
		}
		number, err := strconv.Atoi(part)
		if err != nil || number > maxInteger || number < -maxInteger {
			return i, fmt.Errorf("parameter %s: the range %s is not of whole numbers below %d. List the values, or quote the string", name, text, maxInteger)
		}
		numbers[n] = number
	}
	first, last, step := numbers[0], numbers[1], numbers[2]
	if step <= 0 {
		return i, fmt.Errorf("parameter %s: the step of the range %s is not above 0. Write FIRST..LAST..STEP; a range may go down", name, text)
	}
	i.isRange, i.first, i.step = true, first, step
	if last < first {
		i.step = -step
	}
	i.count = min((last-first)/i.step+1, MaxTrials+1)
	for _, part := range parts[:2] {
		digits := strings.TrimPrefix(part, "-")
		if len(digits) > 1 && digits[0] == '0' {
			i.width = max(i.width, len(part))
		}
	}
	return i, nil
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

const maxInteger = 1_000_000_000_000
