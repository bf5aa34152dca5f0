package activities

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/evidence"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// maxOutputLines and maxStreamOutput limit the part of one stream in a result's output, and
	// maxOutput the output of all tasks of a host.
	maxOutputLines  = 100
	maxStreamOutput = 64 << 10
	maxOutput       = 256 << 10
)

// outputEnd is the end of one process's stream.
type outputEnd struct {
	path   string
	size   int // upper bound of the output, with prefixes
	prefix string
	lines  []string
}

// lastOutput returns the end of each process's output, prefixed as on the console, ordered by task
// and then by process. If the output is too long, every stream is shortened, and each task's last
// process has precedence.
func lastOutput(p *plan, processes []supervisor.Process) []string {
	prefix, err := spec.ParsePrefix(p.Spec.Logs.Prefix)
	if err != nil {
		return nil
	}
	var all []*outputEnd
	byAge := map[int][]*outputEnd{} // keyed by how many later processes the task has
	later := map[string]int{}
	for _, q := range slices.Backward(processes) {
		age := later[q.Key.Task]
		later[q.Key.Task]++
		if _, err := p.userOf(q); err != nil || q.LogDir == "" {
			continue // the run keeps no files, or they are unreadable
		}
		for _, name := range []string{tasklog.StderrFile, tasklog.StdoutFile} {
			path := filepath.Join(q.LogDir, name)
			if info, err := os.Stat(path); err == nil && info.Size() > 0 {
				end := &outputEnd{path: path, prefix: prefix.Format(p.prefixFields(q.Key.Task, p.number(q)))}
				lines := min(info.Size(), maxOutputLines) // a line has at least one byte
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

// shareOf returns the largest share of a stream for which all streams together fit in total.
// Streams smaller than the share are complete.
func shareOf(ends []*outputEnd, total int) int {
	sizes := list.Of(ends, func(end *outputEnd) int { return end.size })
	slices.Sort(sizes)
	for i, size := range sizes {
		if share := total / (len(sizes) - i); size >= share {
			return share
		}
		total -= size
	}
	return maxStreamOutput
}

// read reads the stream's last lines, and returns their size with prefixes, which is at most share.
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

func (p *plan) prefixFields(task string, attempt int) spec.PrefixFields {
	f := spec.PrefixFields{Attempt: attempt}
	if m, err := p.clusterFor(task).Member(task); err == nil {
		f.Type, f.Index, f.Rank, f.LocalRank, f.Host = m.Type, m.Index, m.Rank, m.LocalRank, m.Host
	}
	return f
}

// maxEvidence limits the end of each stream that is searched for errors, in bytes. It is searched
// only when the process has failed or is about to be stopped.
const maxEvidence = 128 << 10

// printedError returns the error, among those that a process printed, that killed it or soon will,
// or nil if there is none.
func printedError(logDir string) *spec.PrintedError {
	if logDir == "" {
		return nil
	}
	var found []evidence.Dated
	var last time.Time
	for _, end := range tasklog.StreamEnds(logDir, maxEvidence) {
		if end.Written.After(last) {
			last = end.Written
		}
		for _, f := range evidence.Scan(end.Text, end.Offset) {
			after, by := end.Times(f.End)
			found = append(found, evidence.Dated{Finding: f, After: after, By: by})
		}
	}
	f := evidence.Choose(found, last)
	if f == nil {
		return nil
	}
	return &spec.PrintedError{
		Kind: f.Kind, Line: f.Line, Place: f.Place, LostPeer: f.LostPeer, Survivable: f.Survived,
		After: f.After.UTC(), By: f.By.UTC(),
	}
}

// showsError reports whether a process has reported an error, or printed one that programs exit
// with. Errors about a lost peer also count, because such a process is about to exit. If the file
// system does not answer, it returns false.
func (l *taskLease) showsError(p supervisor.Process) bool {
	if p.LogDir == "" {
		return false
	}
	user, err := l.plan.userOf(p)
	if err != nil {
		return false
	}
	found := make(chan bool, 1)
	go func() { // not in the group: the host's shutdown does not wait for it
		shows := false
		_ = user.Do(func() error {
			_, err := os.Stat(filepath.Join(p.LogDir, tasklog.ErrorFile))
			if shows = err == nil; !shows {
				// Record that the output so far was printed before the stop.
				tasklog.NewTimes(p.LogDir).Note()
				e := printedError(p.LogDir)
				shows = e != nil && !e.Survivable
			}
			return nil
		})
		found <- shows
	}()
	select {
	case is := <-found:
		return is
	case <-time.After(lookPatience):
		return false
	}
}

// lookPatience is the maximum time to wait for the file system before a process is stopped.
const lookPatience = time.Second

// maxMessage limits failure messages, in bytes, because the run's mutable state contains them.
const maxMessage = 1024

// bounded makes a string short and valid enough for a failure message. A program may write
// anything, but a failure that is not valid UTF-8 cannot be sent.
func bounded(s string) string {
	return shorten.Text(strings.ToValidUTF8(s, "\uFFFD"), maxMessage)
}
