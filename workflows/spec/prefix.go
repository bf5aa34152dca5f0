package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// DefaultPrefix is the default of [Logs.Prefix].
const DefaultPrefix = "[{{.Type}}-{{.Index}}]:"

// prefixColumns is how wide the default prefix is, at least.
const prefixColumns = 14

// PrefixFields is what a prefix can be made of.
type PrefixFields struct {
	Type      string
	Index     int
	Rank      int
	LocalRank int
	// Attempt is the number of the process among those of its task.
	Attempt int
	Host    string
}

// Prefix is a parsed [Logs.Prefix].
type Prefix struct {
	parts  []prefixPart
	padded bool
}

// prefixPart is a literal text, or a field when get is set.
type prefixPart struct {
	text string
	get  func(PrefixFields) string
}

// ParsePrefix reads a template: text in which {{.Type}}, {{.Index}},
// {{.Rank}}, {{.LocalRank}}, {{.Attempt}} and {{.Host}} stand for what they
// name, and torch's ${role_name}, ${rank} and ${local_rank} do too. This is
// all that Go's template language is needed for here; the whole of it would
// let a spec compute for ever.
//
// nil is [DefaultPrefix], and an empty text no prefix at all.
func ParsePrefix(template *string) (Prefix, error) {
	text := DefaultPrefix
	if template != nil {
		text = *template
	}
	p := Prefix{padded: text == DefaultPrefix}
	for rest := text; rest != ""; {
		at, open, end := nextField(rest)
		if at < 0 {
			p.parts = append(p.parts, prefixPart{text: rest})
			break
		}
		if at > 0 {
			p.parts = append(p.parts, prefixPart{text: rest[:at]})
		}
		name, after, closed := strings.Cut(rest[at+len(open):], end)
		if !closed {
			return Prefix{}, valueError{Quote(text) + " has a " + open + " without " + end, "close it"}
		}
		get := prefixField(open, strings.TrimSpace(name))
		if get == nil {
			return Prefix{}, valueError{
				Quote(open+name+end) + " is no field of a prefix",
				"there are {{.Type}}, {{.Index}}, {{.Rank}}, {{.LocalRank}}, {{.Attempt}}, {{.Host}}, ${role_name}, ${rank} and ${local_rank}",
			}
		}
		p.parts = append(p.parts, prefixPart{get: get})
		rest = after
	}
	return p, nil
}

// nextField finds the first field, in either spelling.
func nextField(text string) (at int, open, end string) {
	goStyle, torchStyle := strings.Index(text, "{{"), strings.Index(text, "${")
	if torchStyle >= 0 && (goStyle < 0 || torchStyle < goStyle) {
		return torchStyle, "${", "}"
	}
	return goStyle, "{{", "}}"
}

func prefixField(open, name string) func(PrefixFields) string {
	switch open + name {
	case "{{.Type", "${role_name":
		return func(f PrefixFields) string { return f.Type }
	case "{{.Index":
		return func(f PrefixFields) string { return strconv.Itoa(f.Index) }
	case "{{.Rank", "${rank":
		return func(f PrefixFields) string { return strconv.Itoa(f.Rank) }
	case "{{.LocalRank", "${local_rank":
		return func(f PrefixFields) string { return strconv.Itoa(f.LocalRank) }
	case "{{.Attempt", "{{.Restart":
		return func(f PrefixFields) string { return strconv.Itoa(f.Attempt) }
	case "{{.Host":
		return func(f PrefixFields) string { return f.Host }
	default:
		return nil
	}
}

// Format returns the start of a console line of a task; the line follows directly.
// The default prefix is padded to 14 columns, and longer ones are not cut, and
// followed by a space: "[worker-0]:    ". Any other is taken as it is.
func (p Prefix) Format(f PrefixFields) string {
	var b strings.Builder
	for _, part := range p.parts {
		if part.get != nil {
			b.WriteString(part.get(f))
		} else {
			b.WriteString(part.text)
		}
	}
	if !p.padded {
		return b.String()
	}
	return fmt.Sprintf("%-*s ", prefixColumns, b.String())
}
