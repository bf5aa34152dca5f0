package pmi

import (
	"fmt"
	"strings"
)

// Mapping returns which ranks share a host, in MPICH's format. hosts lists each rank's host. A
// block (FIRST,HOSTS,RANKS) stands for RANKS ranks on each of HOSTS hosts, starting at the host
// numbered FIRST. Hosts are numbered in order of occurrence.
func Mapping(hosts []string) string {
	type block struct{ first, hosts, ranks int }
	var blocks []block
	numbers := map[string]int{}
	for i := 0; i < len(hosts); {
		number, known := numbers[hosts[i]]
		if !known {
			number = len(numbers)
			numbers[hosts[i]] = number
		}
		n := 1
		for i+n < len(hosts) && hosts[i+n] == hosts[i] {
			n++
		}
		i += n
		if last := len(blocks) - 1; last >= 0 && blocks[last].ranks == n && blocks[last].first+blocks[last].hosts == number {
			blocks[last].hosts++
			continue
		}
		blocks = append(blocks, block{number, 1, n})
	}
	var text strings.Builder
	text.WriteString("(vector")
	for _, b := range blocks {
		fmt.Fprintf(&text, ",(%d,%d,%d)", b.first, b.hosts, b.ranks)
	}
	return text.String() + ")"
}
