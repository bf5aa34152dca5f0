package spec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// Std is a set of a process's output streams. Its values are torch's: 0 none, 1 stdout, 2 stderr,
// 3 both.
type Std int

// The values of [Std].
const (
	StdNone Std = 0
	StdOut  Std = 1
	StdErr  Std = 2
	StdAll  Std = StdOut | StdErr
)

// Out reports whether the set contains stdout.
func (s Std) Out() bool { return s&StdOut != 0 }

// Err reports whether the set contains stderr.
func (s Std) Err() bool { return s&StdErr != 0 }

// StdMasks maps ranks to a [Std], as specified by `redirects` and `tee`. The zero value means none
// for every rank.
type StdMasks struct {
	all  Std
	some []stdRange
}

// stdRange is a mask for a range of ranks.
type stdRange struct {
	first, last int
	std         Std
}

// Of returns a rank's mask, or none if the rank is not listed.
func (m StdMasks) Of(rank int) Std {
	// If a rank is listed twice, the last mask counts, as in torch.
	for i := len(m.some) - 1; i >= 0; i-- {
		if r := m.some[i]; rank >= r.first && rank <= r.last {
			return r.std
		}
	}
	return m.all
}

// highest returns the highest listed rank, or -1.
func (m StdMasks) highest() int {
	highest := -1
	for _, r := range m.some {
		highest = max(highest, r.last)
	}
	return highest
}

var stdRegexp = lazyregexp.New(stdPattern)

// ParseStd parses a mask. A mask is one digit for all ranks ("3"), or a list by rank ("0:3,1-7:1"),
// in which omitted ranks get 0. Unlike torch's parser, it accepts ranges, and ranks of any length.
func ParseStd(text string) (StdMasks, error) {
	if !stdRegexp().MatchString(text) {
		return StdMasks{}, valueError{
			Quote(text) + " must be 0 (neither stream), 1 (stdout), 2 (stderr), 3 (both), or a list of these by rank",
			`write "3" for all ranks, or "0:3,1-7:1" by rank`,
		}
	}
	if len(text) == 1 {
		return StdMasks{all: stdOf(text)}, nil
	}
	var m StdMasks
	for part := range strings.SplitSeq(text, ",") {
		ranks, std, _ := strings.Cut(part, ":")
		first, last, isRange := strings.Cut(ranks, "-")
		if !isRange {
			last = first
		}
		r := stdRange{std: stdOf(std)}
		var err1, err2 error
		r.first, err1 = strconv.Atoi(first)
		r.last, err2 = strconv.Atoi(last)
		switch {
		case err1 != nil || err2 != nil || r.last >= MaxTasks:
			return StdMasks{}, valueError{Quote(part) + " contains a rank that no run can have", "ranks are 0 to " + strconv.Itoa(MaxTasks-1)}
		case r.first > r.last:
			return StdMasks{}, valueError{Quote(part) + " is a range in descending order", "put the lower rank first"}
		}
		m.some = append(m.some, r)
	}
	return m, nil
}

// stdOf parses a digit from 0 to 3.
func stdOf(digit string) Std { return Std(digit[0] - '0') }

// DefaultPrefix is the default of [Logs.Prefix].
const DefaultPrefix = "[{{.Type}}-{{.Index}}]:"

// prefixColumns is the minimum width of the default prefix.
const prefixColumns = 14

// PrefixFields are the values for a prefix template.
type PrefixFields struct {
	Type      string
	Index     int
	Rank      int
	LocalRank int
	// Attempt is the process's number within its task.
	Attempt int
	Host    string
}

// Prefix is a parsed [Logs.Prefix].
type Prefix struct {
	parts  []prefixPart
	padded bool
}

// prefixPart is a literal, or a field if get is set.
type prefixPart struct {
	text string
	get  func(PrefixFields) string
}

// ParsePrefix reads a template: text with the fields {{.Type}}, {{.Index}}, {{.Rank}},
// {{.LocalRank}}, {{.Attempt}} and {{.Host}}, or torch's ${role_name}, ${rank} and ${local_rank}.
// It does not use Go's templates, with which a spec could compute forever.
//
// nil means [DefaultPrefix], and an empty string means no prefix.
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
			return Prefix{}, valueError{Quote(text) + " contains a " + open + " without a " + end, "close it"}
		}
		get := prefixField(open, strings.TrimSpace(name))
		if get == nil {
			return Prefix{}, valueError{
				Quote(open+name+end) + " is not a prefix field",
				"its fields are {{.Type}}, {{.Index}}, {{.Rank}}, {{.LocalRank}}, {{.Attempt}}, {{.Host}}, ${role_name}, ${rank} and ${local_rank}",
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

// Format returns the prefix of a task's console lines. Each line follows it directly. The default
// prefix, such as "[worker-0]:", is padded to 14 columns but never cut, and ends with a space. A
// custom prefix is used unchanged.
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
