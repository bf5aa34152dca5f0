package stacktree

import (
	"fmt"
	"slices"
	"strings"
)

// Findings is the result of comparing a run's stacks.
type Findings struct {
	// Total is the number of ranks.
	Total int `json:"total"`
	// Classes lists the classes. If any are named, the majority's class comes first, followed by
	// the named ones. The rest are ordered by size.
	Classes []Class `json:"classes"`
	// LeftOut is the number of classes omitted from the end; see [Findings.Short].
	LeftOut int `json:"left_out,omitempty"`
	// Outliers are the ranks that hold up the rest, or empty if the stacks do not show them.
	Outliers Ranks `json:"outliers,omitempty"`
	// Sentence states the result.
	Sentence string `json:"sentence"`
	// Motion is the result of a second capture.
	Motion Motion `json:"motion,omitzero"`
}

// Explain compares a run's stacks. hostOf returns a rank's host, or "" if it is unknown or all
// ranks are on one host.
func Explain(t Tree, hostOf func(rank int) string) Findings {
	all := t.classes()
	f := Findings{}
	for _, c := range all {
		f.Total += c.Count
	}
	f.Outliers, f.Sentence = blame(all, f.Total, hostOf)
	slices.SortStableFunc(all, func(a, b *Class) int { return place(a, all) - place(b, all) })
	for _, c := range all {
		f.Classes = append(f.Classes, *c)
	}
	return f
}

// place returns a class's position in the order: the majority, outliers, the rest. all is sorted by
// size.
func place(c *Class, all []*Class) int {
	named := slices.ContainsFunc(all, func(c *Class) bool { return c.Outlier })
	switch {
	case !named:
		return 0
	case c.Outlier:
		return 1
	case c == all[0]:
		return 0
	}
	return 2
}

// blame applies the package's rules and marks the named ranks' classes.
func blame(all []*Class, total int, hostOf func(int) string) (Ranks, string) {
	var waiting, others, unknown, ended []*Class
	for _, c := range all {
		switch {
		case c.waiting():
			waiting = append(waiting, c)
		case c.Ended:
			ended = append(ended, c)
		case !c.known() || !c.seen():
			unknown = append(unknown, c)
		default:
			others = append(others, c)
		}
	}
	n := ranksOf(waiting).Len()
	name := func(classes []*Class, format string, args ...any) (Ranks, string) {
		for _, c := range classes {
			c.Outlier = true
		}
		ranks := ranksOf(classes)
		return ranks, subject(ranks, hostOf) + " " + number(ranks, "is the only one that ", "are the only ones that ") + fmt.Sprintf(format, args...)
	}
	switch {
	case n > 0:
		what := "does not wait for others"
		if one := names(waiting); len(one) == 1 {
			what = "is not in " + one[0]
		}
		for _, suspects := range [][]*Class{slices.Concat(others, ended), unknown} {
			count := ranksOf(suspects).Len()
			if count == 0 {
				continue
			}
			if count > n {
				return nil, fmt.Sprintf("cannot tell which task blocks the others: %d of %d are not waiting for others", count, total)
			}
			if count > 1 {
				what = strings.Replace(strings.Replace(what, "is not", "are not", 1), "does not", "do not", 1)
			}
			ranks, sentence := name(suspects, "%s", what)
			if missed := ranksOf(unknown); len(missed) > 0 && missed.String() != ranks.String() {
				sentence += "; " + missed.words() + " could not be read"
			} else if len(missed) > 0 {
				sentence = subject(ranks, hostOf) + " could not be read, and all others are waiting"
				if one := names(waiting); len(one) == 1 {
					sentence = subject(ranks, hostOf) + " could not be read, and all others are in " + one[0]
				}
			}
			return ranks, sentence
		}
		return apart(waiting, total, name)
	case len(unknown) == 0 && len(ended) == 0 && len(all) > 1:
		most := all[0]
		rest := slices.DeleteFunc(slices.Clone(all[1:]), func(c *Class) bool { return c.isIn(most.where()) })
		there := total - ranksOf(rest).Len() // in the same function
		if most.Wait.Reason != "" && most.Wait.Reason != Running && there >= 3 && 4*there >= 3*total && len(rest) > 0 {
			return name(rest, "%s not in %s", number(ranksOf(rest), "is", "are"), most.where())
		}
	case len(ended) > 0 && len(unknown) == 0 && len(others) > 0:
		if ranks := ranksOf(others); 2*ranks.Len() < total {
			return name(others, "%s not ended", number(ranks, "has", "have"))
		}
	}
	return nil, "cannot tell which task blocks the others: no ranks wait for others"
}

// apart finds ranks that are waiting for other ranks in a different place than most of them.
func apart(waiting []*Class, total int, name func([]*Class, string, ...any) (Ranks, string)) (Ranks, string) {
	most := waiting[0]
	var rest []*Class
	for _, c := range waiting {
		if c != most {
			rest = append(rest, c)
		}
	}
	if len(rest) == 0 {
		if total == 1 {
			return nil, "cannot tell which task blocks the others: there is only one rank"
		}
		return nil, fmt.Sprintf("cannot tell which task blocks the others: all %d are in %s", total, most.Wait.Name)
	}
	if most.Wait.Reason != Collective || 2*most.Count <= ranksOf(waiting).Len() {
		return nil, "cannot tell which task blocks the others: all are waiting for others, in different places"
	}
	ranks := ranksOf(rest)
	verb := number(ranks, "waits", "wait")
	if one := names(rest); len(one) == 1 && one[0] != most.Wait.Name {
		return name(rest, "%s in %s; the others are in %s", verb, one[0], most.Wait.Name)
	}
	return name(rest, "%s not in %s at %s", verb, most.Wait.Name, most.Place[0])
}

func names(classes []*Class) []string {
	var all []string
	for _, c := range classes {
		all = append(all, c.Wait.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func ranksOf(classes []*Class) Ranks {
	var all Ranks
	for _, c := range classes {
		all = append(all, c.Ranks...)
	}
	return all.normal()
}

// subject returns "rank 2 on gpu-3", or several ranks with their first few hosts.
func subject(ranks Ranks, hostOf func(int) string) string {
	const most = 4
	var hosts []string
	for _, r := range ranks.First(most) {
		if h := hostOf(r); h != "" && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	text := ranks.words()
	if len(hosts) > 0 && ranks.Len() <= most {
		text += " on " + strings.Join(hosts, ", ")
	}
	return text
}

func number(ranks Ranks, one, many string) string {
	if ranks.Len() == 1 {
		return one
	}
	return many
}
