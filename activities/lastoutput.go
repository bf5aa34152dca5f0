package activities

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/tasklog"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// maxOutputLines and maxStreamOutput bound what one stream gives to the output
	// in a result, and maxOutput all of a host.
	maxOutputLines  = 100
	maxStreamOutput = 64 << 10
	maxOutput       = 256 << 10
)

// outputEnd is the end of one stream of one process.
type outputEnd struct {
	path   string
	size   int // what it may give, with prefixes
	prefix string
	lines  []string
}

// lastOutput returns the end of each process's output, prefixed like the console's: by
// task, its processes one after the other. Where that is too much together, every
// stream gives less, and what the last process of a task wrote goes first.
func lastOutput(p *plan, processes []supervisor.Process) []string {
	prefix, err := spec.ParsePrefix(p.Spec.Logs.Prefix)
	if err != nil {
		return nil
	}
	var all []*outputEnd
	byAge := map[int][]*outputEnd{} // by how many processes of the task came after
	later := map[string]int{}
	for _, q := range slices.Backward(processes) {
		age := later[q.Key.Task]
		later[q.Key.Task]++
		if _, err := p.userOf(q); err != nil || q.LogDir == "" {
			continue // the run keeps no files, or not for us
		}
		for _, name := range []string{tasklog.StderrFile, tasklog.StdoutFile} {
			path := filepath.Join(q.LogDir, name)
			if info, err := os.Stat(path); err == nil && info.Size() > 0 {
				end := &outputEnd{path: path, prefix: prefix.Format(p.prefixFields(q.Key.Task, p.number(q)))}
				lines := min(info.Size(), maxOutputLines) // no more than these
				end.size = int(min(info.Size()+lines*int64(len(end.prefix)), maxStreamOutput))
				all = append(all, end)
				byAge[age] = append(byAge[age], end)
			}
		}
	}
	left := maxOutput
	for age := 0; age < len(processes) && left > maxMessage; age++ {
		share := shareOf(byAge[age], left)
		for _, end := range byAge[age] {
			left -= end.read(share)
		}
	}
	var lines []string
	for _, end := range slices.Backward(all) {
		lines = append(lines, end.lines...)
	}
	return lines
}

// shareOf returns how much each stream may give, so that together they give no more
// than that, and small ones all they have.
func shareOf(ends []*outputEnd, total int) int {
	sizes := make([]int, len(ends))
	for i, end := range ends {
		sizes[i] = end.size
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		if share := total / (len(sizes) - i); size >= share {
			return share
		}
		total -= size
	}
	return maxStreamOutput
}

// read takes the last lines of the stream, and says how many bytes they have with
// their prefixes: at most its share.
func (e *outputEnd) read(share int) (bytes int) {
	share = min(share, maxStreamOutput)
	lines := tasklog.SplitLines(tasklog.LastLines(e.path, maxOutputLines, max(0, share-len(e.prefix))))
	for _, line := range slices.Backward(lines) {
		line = e.prefix + line
		if bytes+len(line) > share {
			break
		}
		bytes += len(line)
		e.lines = append(e.lines, line)
	}
	slices.Reverse(e.lines)
	return bytes
}

// prefixFields returns what the prefix of the lines of a process is made of.
func (p *plan) prefixFields(task string, attempt int) spec.PrefixFields {
	f := spec.PrefixFields{Attempt: attempt}
	if m, err := p.clusterFor(task).Member(task); err == nil {
		f.Type, f.Index, f.Rank, f.LocalRank, f.Host = m.Type, m.Index, m.Rank, m.LocalRank, m.Host
	}
	return f
}
