package stacks

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// report is the capture of one task.
type report struct {
	Task
	taken     time.Time
	processes []*process
	unshown   int // number of processes in excess of the limit
	gaps      []string
}

func (r *report) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "What %s was doing at %s\n", printable(r.Name, maxLine), r.taken.UTC().Format("2006-01-02T15:04:05.000Z"))
	for _, line := range r.Head {
		fmt.Fprintln(b, printable(line, maxLine))
	}
	for _, gap := range r.gaps {
		fmt.Fprintln(b, printable(gap, maxLine))
	}
	for _, p := range r.processes {
		p.write(b)
	}
	if r.unshown > 0 {
		fmt.Fprintf(b, "\n%s not shown\n", units.Count(r.unshown, "more process is", "more processes are"))
	}
	return b.Flush()
}

func (p *process) write(w io.Writer) {
	command := cmp.Or(p.command, "["+printable(p.Name, maxLine)+"]")
	fmt.Fprintf(w, "\n=== process %d: %s\n", p.pid, command)
	fmt.Fprintf(w, "%s (%c), parent %d, %s, %s of CPU time\n", stateWord(p.Stat), p.State, p.PPID, units.Count(p.Threads, "thread", "threads"), p.User+p.System)
	for _, gap := range p.gaps {
		fmt.Fprintf(w, "%s\n", gap)
	}
	if p.answer != "" {
		fmt.Fprintf(w, "\n--- by its own account\n%s", strings.TrimRight(printableLines(p.answer), "\n")+"\n")
	}
	if p.silence != "" {
		fmt.Fprintf(w, "\n--- by its own account: %s\n", p.silence)
	}
	if p.native != "" {
		fmt.Fprintf(w, "\n--- by its machine code\n%s", strings.TrimRight(printableLines(p.native), "\n")+"\n")
	}
	if p.unnative != "" {
		fmt.Fprintf(w, "\n--- by its machine code: %s\n", p.unnative)
	}
	if len(p.threads) == 0 {
		return
	}
	fmt.Fprintf(w, "\n--- by the kernel's\n")
	for i := range p.threads {
		p.threads[i].write(w)
	}
	if p.unshown > 0 {
		fmt.Fprintf(w, "%s not shown\n", units.Count(p.unshown, "more thread is", "more threads are"))
	}
}

func (t *thread) write(w io.Writer) {
	fmt.Fprintf(w, "thread %d %s: %s (%c), %s of CPU time", t.tid, printable(t.Name, maxLine), stateWord(t.Stat), t.State, t.User+t.System)
	switch {
	case t.call.name != "":
		fmt.Fprintf(w, ", in %s", t.call)
	case t.barred:
		fmt.Fprint(w, ", no permission to see the system call")
	}
	if t.channel != "" {
		fmt.Fprintf(w, ", waits in %s", t.channel)
	}
	fmt.Fprintln(w)
	for _, frame := range t.kernel {
		fmt.Fprintf(w, "    %s\n", frame)
	}
}

// printableLines makes multi-line text safe for a terminal.
func printableLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		escape(&b, strings.TrimSuffix(line, "\n"), '\t')
		b.WriteByte('\n')
	}
	return b.String()
}

// printable makes text safe for one line of a terminal.
func printable(text string, most int) string {
	var b strings.Builder
	escape(&b, shorten.Text(text, most), 0)
	return b.String()
}

// escape writes text without control characters, which would affect the reader's terminal.
func escape(b *strings.Builder, text string, except rune) {
	for _, r := range strings.ToValidUTF8(text, "?") {
		if strconv.IsPrint(r) || r == except {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
}
