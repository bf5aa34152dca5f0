package tasklog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// FilterOptions configures [Filter].
type FilterOptions struct {
	// Stdout and Stderr list strings. A line is copied if it contains a string listed for its
	// stream.
	Stdout, Stderr []string
	// Prefix returns the start of a process's lines.
	Prefix func(rank, attempt int) string
	// Select reports whether a task's output is copied.
	Select func(rank int) bool
	// Name is part of the file names, to distinguish hosts that write to one directory.
	Name string
}

// Filter copies those lines of many processes that contain certain strings to one file per attempt,
// task by task:
//
//	<run dir>/attempt_<n>/filtered_stdout.log filtered_stderr.log
//
// Only the first 64 KiB of a line are read.
func Filter(ctx context.Context, runDir string, o FilterOptions) error {
	numbers, err := attempts(runDir)
	for _, n := range numbers {
		for i, texts := range [][]string{o.Stdout, o.Stderr} {
			if len(texts) > 0 {
				err = errors.Join(err, o.filter(ctx, runDir, n, outputs[i], texts))
			}
		}
	}
	return errors.Join(err, ctx.Err())
}

// filter writes one of an attempt's files.
func (o FilterOptions) filter(ctx context.Context, runDir string, attempt int, name string, texts []string) error {
	to := "filtered_" + name
	if o.Name != "" {
		to = "filtered_" + strings.TrimSuffix(name, ".log") + "." + fileName(o.Name) + ".log"
	}
	dir := attemptDir(runDir, attempt)
	f, err := os.OpenFile(filepath.Join(dir, to), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, FileMode(dir))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	ranks, err := numbered(dir, "")
	for _, rank := range ranks {
		if o.Select(rank) && ctx.Err() == nil {
			path := filepath.Join(ProcessDir(runDir, attempt, rank), name)
			err = errors.Join(err, ignoreMissing(copyMatches(ctx, w, path, o.Prefix(rank, attempt), texts)))
		}
	}
	return errors.Join(err, w.Flush(), f.Close())
}

// copyMatches writes the lines of a file that contain one of the texts.
func copyMatches(ctx context.Context, w io.Writer, path, prefix string, texts []string) error {
	f, err := openToRead(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for r := bufio.NewReaderSize(f, maxHeld); ctx.Err() == nil; {
		line, long, err := r.ReadLine()
		if err != nil {
			return ignoreEnd(err)
		}
		if slices.ContainsFunc(texts, func(text string) bool { return bytes.Contains(line, []byte(text)) }) {
			if _, err := io.WriteString(w, prefix+string(line)+"\n"); err != nil {
				return err
			}
		}
		for long && err == nil { // the rest of the line
			_, long, err = r.ReadLine()
		}
	}
	return nil
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
