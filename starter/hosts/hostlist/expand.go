package hostlist

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Expand expands Slurm's lists of hosts: a,n[1-3,07-10],c. Numbers keep their leading zeros.
func Expand(text string) ([]string, error) {
	var names []string
	for rest := text; ; {
		end := strings.IndexAny(rest, ",[")
		if end < 0 {
			end = len(rest)
		}
		prefix := rest[:end]
		if end == len(rest) || rest[end] == ',' {
			names = append(names, prefix)
		} else {
			inside, after, closed := strings.Cut(rest[end+1:], "]")
			if !closed {
				return nil, fmt.Errorf("a [ has no ]; write for example n[1-4]")
			}
			suffix, _, _ := strings.Cut(after, ",")
			more, err := numbered(prefix, inside, suffix, spec.MaxTasks-len(names))
			if err != nil {
				return nil, err
			}
			names = append(names, more...)
			end = len(rest) - len(after) + len(suffix)
		}
		if names[len(names)-1] == "" {
			return nil, fmt.Errorf("a host's name is empty; write for example a,b or n[1-4]")
		}
		if end == len(rest) {
			return names, nil
		}
		rest = rest[end+1:]
	}
}

// numbered returns names that differ in a number, from numbers such as 1-3,7.
func numbered(prefix, numbers, suffix string, most int) (names []string, err error) {
	for item := range strings.SplitSeq(numbers, ",") {
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 31)
		to, err2 := strconv.ParseUint(last, 10, 31)
		switch {
		case err1 != nil || err2 != nil || from > to || strings.ContainsAny(suffix, "[]"):
			return nil, fmt.Errorf("[%s]%s is not a range of hosts; write for example n[1-4,7]", numbers, suffix)
		case to-from >= uint64(max(most-len(names), 0)):
			return nil, fmt.Errorf("[%s] are more than %d hosts; name fewer", numbers, spec.MaxTasks)
		}
		for n := from; n <= to; n++ {
			names = append(names, fmt.Sprintf("%s%0*d%s", prefix, len(first), n, suffix))
		}
	}
	return names, nil
}
