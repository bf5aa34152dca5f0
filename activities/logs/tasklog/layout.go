package tasklog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Names of a process's files, in its [ProcessDir].
const (
	StdoutFile = "stdout.log"
	StderrFile = "stderr.log"
	ErrorFile  = "error.json"
	ResultFile = "result.json"
	// TracePrefix starts the names of torch's Flight Recorder files; the rank follows.
	TracePrefix = "torch_trace_rank_"
)

const attemptPrefix = "attempt_"

// RunDir returns the directory of a run's execution in the log directory. It contains only
// attempts.
func RunDir(logDir, workflowID, runID string) string {
	return filepath.Join(logDir, fileName(workflowID), fileName(shortRunID(runID)))
}

// ProcessDir returns the directory of the n-th process of the task with the given rank, counted
// from 0 over the task's life.
func ProcessDir(runDir string, n, rank int) string {
	return filepath.Join(attemptDir(runDir, n), strconv.Itoa(rank))
}

// SplitProcessDir is the inverse of [ProcessDir].
func SplitProcessDir(dir string) (runDir string, n, rank int, ok bool) {
	attempt, last := filepath.Split(dir)
	attempt = filepath.Clean(attempt)
	rank, isRank := number(last, "")
	n, isAttempt := number(filepath.Base(attempt), attemptPrefix)
	return filepath.Dir(attempt), n, rank, isRank && isAttempt
}

func attemptDir(runDir string, n int) string {
	return filepath.Join(runDir, attemptPrefix+strconv.Itoa(n))
}

// shortRunID returns the last part of Temporal's run ID. The first part is not suitable: recent
// servers use it for the time, so it is the same for all runs that start in the same minute.
func shortRunID(runID string) string {
	return runID[strings.LastIndexByte(runID, '-')+1:]
}

// maxFileName leaves a margin under Linux's limit of 255 bytes.
const maxFileName = 200

// fileName returns a file name for any string. Different strings have different names. Letters,
// digits, and the characters of ordinary IDs are kept; other bytes become %XX. A name that is too
// long is truncated, and "%-" and a hash of the whole string are appended.
func fileName(text string) string {
	if text == "" {
		return "%"
	}
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		ordinary := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			c == '_' || c == '-' || c == '.' && i > 0 // neither ".." nor hidden files
		if ordinary {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	name := b.String()
	if len(name) > maxFileName {
		sum := sha256.Sum256([]byte(text))
		name = name[:maxFileName-34] + "%-" + hex.EncodeToString(sum[:16])
	}
	return name
}

// MakeDir creates a log directory with its parents. If a file is in the way, the error names it.
func MakeDir(dir string) error {
	var err error
	// [Prune] may remove an empty parent before its child is created.
	for range 3 {
		if err = os.MkdirAll(dir, Passable); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
		for at := dir; ; at = filepath.Dir(at) {
			if info, statErr := os.Stat(at); statErr == nil && !info.IsDir() {
				return fmt.Errorf("%s is a file", at)
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return err
}

// Passable is the mode of the directories above run directories. Users who may read a run's logs
// can reach the logs, but cannot list other runs.
const Passable = 0o711

// FileMode returns the mode of our own files in a directory of logs. Users who may read the
// directory may read the file.
func FileMode(dir string) fs.FileMode {
	const closed = 0o600
	info, err := os.Stat(dir)
	if err != nil {
		return closed
	}
	return closed | info.Mode().Perm()&0o044
}

// attempts returns the numbers of a run's attempts in ascending order. There are none if the
// directory does not exist.
func attempts(runDir string) ([]int, error) {
	return numbered(runDir, attemptPrefix)
}

// Attempts returns the numbers of the processes with a directory, in ascending order, by the rank
// of their task. There are none if runDir does not exist.
func Attempts(runDir string) (map[int][]int, error) {
	numbers, err := attempts(runDir)
	byRank := map[int][]int{}
	for _, n := range numbers {
		ranks, rankErr := numbered(attemptDir(runDir, n), "")
		err = cmp.Or(err, rankErr)
		for _, rank := range ranks {
			byRank[rank] = append(byRank[rank], n)
		}
	}
	return byRank, err
}

// numbered returns the numbers of the directories with names that consist of prefix and a number.
func numbered(dir, prefix string) ([]int, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	names, err := f.Readdirnames(-1)
	err = cmp.Or(err, f.Close())
	var out []int
	for _, name := range names {
		if n, ok := number(name, prefix); ok {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, ignoreMissing(err)
}

// number parses N in the name <prefix>N, as we write it.
func number(name, prefix string) (int, bool) {
	text, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && n >= 0 && strconv.Itoa(n) == text
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
