package stacks

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

const (
	maxProcesses = 256 // per task
	maxThreads   = 256 // of a process
	maxFrames    = 64  // per kernel stack
	maxFiles     = 4096
	maxLine      = 2 << 10 // bytes of a command line or other single line
	// processBound limits the time to read one process.
	processBound = time.Second
)

// process is the state collected from a process.
type process struct {
	pid int
	proc.Stat
	command string
	threads []thread
	unshown int // number of threads in excess of the limit
	// answers is the /proc path of its descriptor for answers to the signal, or empty if it has not
	// opted in.
	answers string
	// gaps describes what could not be read.
	gaps []string
	// ended reports whether the process has exited since it was found.
	ended bool
	// answer is the process's own report, and silence the reason why an expected report is missing.
	answer, silence string
	// native holds its native stacks, and unnative the reason why some or all are missing.
	native, unnative string
}

type thread struct {
	tid int
	proc.Stat
	call    call
	channel string // the kernel function in which it waits
	kernel  []string
	barred  bool // the system call may not be read
}

// readProcess returns the kernel's information about a process. Everything that may hang is done by
// a goroutine that sends its results piece by piece and is abandoned on timeout.
func readProcess(ctx context.Context, pid int, s proc.Stat, logDir string) *process {
	p := &process{pid: pid, Stat: s}
	ctx, cancel := context.WithTimeout(ctx, processBound)
	defer cancel()
	// The buffer holds all pieces, so the sender never waits.
	pieces := make(chan func(*process), maxThreads+8)
	started := detached(func() {
		defer close(pieces)
		readPieces(ctx, pid, s.Ticks, logDir, func(piece func(*process)) { pieces <- piece })
	})
	if !started {
		p.gaps = append(p.gaps, "not read: too many reads of other processes are hanging")
		return p
	}
	for {
		select {
		case piece, more := <-pieces:
			if !more {
				return p
			}
			piece(p)
		case <-ctx.Done():
			p.gaps = append(p.gaps, "the rest could not be read in time")
			return p
		}
	}
}

// readPieces sends what it finds. Reads that acquire the process's locks come late, and those that
// acquire its memory lock come last.
func readPieces(ctx context.Context, pid int, ticks uint64, logDir string, send func(func(*process))) {
	dir := proc.Dir(pid)
	if now, err := proc.ReadStatIn(dir); err != nil || now.Ticks != ticks {
		send(func(p *process) { p.ended, p.gaps = true, append(p.gaps, "it exited while it was being read") })
		return
	}
	if answers := findAnswerFile(dir, logDir); answers != "" {
		send(func(p *process) { p.answers = answers })
	}
	readThreads(ctx, dir, send)
	command := readCommand(dir)
	send(func(p *process) { p.command = command })
}

// findAnswerFile returns where a process is ready to answer, as the path in /proc of its descriptor
// for a file that is named after its process ID in its own namespace. The file is in memory or in
// the log directory.
func findAnswerFile(dir, logDir string) string {
	s, err := readStatus(dir)
	if err != nil || !s.catches(Signal) {
		return ""
	}
	fds, err := readNames(dir+"/fd", maxFiles)
	if err != nil {
		return ""
	}
	for _, fd := range fds {
		link := dir + "/fd/" + fd
		target, err := os.Readlink(link)
		if err != nil {
			continue
		}
		for _, id := range s.ids {
			if target == memoryFile(id) || logDir != "" && isAnswerFile(link, target, answerFile(logDir, id)) {
				return link
			}
		}
	}
	return ""
}

// isAnswerFile reports whether a descriptor refers to the file at path. It accesses only files with
// the right name, because the disks of others may hang.
func isAnswerFile(link, target, path string) bool {
	if filepath.Base(target) != filepath.Base(path) {
		return false
	}
	there, err := os.Stat(path)
	if err != nil || !there.Mode().IsRegular() {
		return false
	}
	open, err := os.Stat(link)
	return err == nil && os.SameFile(open, there)
}

// readNames lists a directory of /proc, up to a bound.
func readNames(path string, most int) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(most)
	if len(names) > 0 {
		err = nil
	}
	return names, err
}

func readThreads(ctx context.Context, dir string, send func(func(*process))) {
	names, err := readNames(dir+"/task", -1)
	if err != nil {
		return // the process has exited
	}
	var tids []int
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			tids = append(tids, tid)
		}
	}
	slices.Sort(tids) // the main thread first, then the others by age
	if len(tids) > maxThreads {
		unshown := len(tids) - maxThreads
		tids = tids[:maxThreads]
		send(func(p *process) { p.unshown = unshown })
	}
	link := linkOf(dir)
	for _, tid := range tids {
		if ctx.Err() != nil {
			return
		}
		if t, ok := readThread(dir+"/task/"+strconv.Itoa(tid), tid, link); ok {
			send(func(p *process) { p.threads = append(p.threads, t) })
		}
	}
}

func readThread(dir string, tid int, link func(int) string) (thread, bool) {
	s, err := proc.ReadStatIn(dir)
	if err != nil {
		return thread{}, false
	}
	t := thread{tid: tid, Stat: s}
	if raw, err := os.ReadFile(dir + "/wchan"); err == nil && string(raw) != "0" {
		t.channel = printable(string(raw), maxLine)
	}
	if raw, err := os.ReadFile(dir + "/syscall"); err == nil {
		t.call = parseCall(raw, link)
	} else {
		t.barred = os.IsPermission(err)
	}
	if raw, err := os.ReadFile(dir + "/stack"); err == nil {
		t.kernel = parseKernelStack(raw)
	}
	return t, true
}

// parseKernelStack returns the frames without the parts that all stacks share.
func parseKernelStack(raw []byte) []string {
	var frames []string
	for line := range bytes.Lines(raw) {
		if len(frames) == maxFrames {
			return append(frames, "…")
		}
		_, frame, ok := strings.Cut(strings.TrimSpace(string(line)), "] ")
		if ok {
			frames = append(frames, printable(frame, maxLine))
		}
	}
	return frames
}

// readCommand returns the command line as it would be typed in a shell.
func readCommand(dir string) string {
	f, err := os.Open(dir + "/cmdline")
	if err != nil {
		return ""
	}
	defer f.Close()
	raw := make([]byte, maxLine+1)
	n, _ := f.Read(raw)
	if n == 0 {
		return ""
	}
	var words []string
	for word := range strings.SplitSeq(strings.TrimRight(string(raw[:n]), "\x00"), "\x00") {
		if word == "" || strings.ContainsAny(word, " \"'\\") {
			word = strconv.Quote(word)
		}
		words = append(words, printable(word, maxLine))
	}
	return printable(strings.Join(words, " "), maxLine)
}
