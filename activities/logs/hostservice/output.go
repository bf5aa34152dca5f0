package hostservice

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/stacks"
)

// Listing lists a run's processes with files on a host.
type Listing struct {
	// Dir is the run's log directory on the host.
	Dir string `json:"dir"`
	// Attempts contains the numbers of the processes in ascending order, by the rank of their task.
	// For numbers that are missing, see [tasklog.Pruned].
	Attempts map[int][]int `json:"attempts"`
}

// Query selects the output to send to a client.
type Query struct {
	Selection tasklog.Selection `json:"selection"`
	// Cursors are the positions that the client has reached; other streams start where the
	// selection does.
	Cursors []Cursor `json:"cursors,omitempty"`
	// WholeLines reports whether unfinished lines are held back; see [tasklog.WholeLines].
	WholeLines bool `json:"whole_lines,omitempty"`
	// Follow reports whether to continue until the run has released the host.
	Follow bool `json:"follow,omitempty"`
}

// Cursor is the offset at which the unread part of a stream starts.
type Cursor struct {
	tasklog.Stream
	Offset int64 `json:"offset"`
}

// record is one record of an output: a piece of a stream, an error, or the end.
type record struct {
	tasklog.Stream
	Offset int64 `json:"offset,omitempty"`
	// Length is the size in bytes of the stream's data that follows.
	Length int `json:"length,omitempty"`
	// Error describes an error about a file.
	Error string `json:"error,omitempty"`
	// End is set in the last record, after all existing output has been sent.
	End *Listing `json:"end,omitempty"`
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request, g grant) {
	attempts, err := tasklog.Attempts(g.Dir)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(Listing{g.Dir, attempts})
}

func (s *Server) output(w http.ResponseWriter, r *http.Request, g grant) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(headerTimeout))
	var q Query
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxQuery)).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = control.SetReadDeadline(time.Time{})
	from, cursors := q.Selection.From(g.Dir), make(map[tasklog.Stream]int64, len(q.Cursors))
	for _, c := range q.Cursors {
		cursors[c.Stream] = c.Offset
	}
	options := tasklog.FollowOptions{Select: q.Selection.Has, From: func(st tasklog.Stream) int64 {
		if offset, ok := cursors[st]; ok {
			return offset
		}
		return from(st)
	}}
	if q.WholeLines {
		options.Hold = tasklog.WholeLines
	}
	ctx, broken := context.WithCancel(r.Context())
	defer broken()
	write := func(record record, data []byte) {
		if ctx.Err() != nil {
			return
		}
		head, err := json.Marshal(record)
		if err == nil {
			_, err = w.Write(append(head, '\n'))
		}
		if err == nil && len(data) > 0 {
			_, err = w.Write(data)
		}
		if err == nil {
			err = control.Flush()
		}
		if err != nil {
			broken()
		}
	}
	options.OnError = func(err error) { write(record{Error: err.Error()}, nil) }
	_ = control.Flush() // tells the client that the request was accepted
	options.As = g.as
	f := tasklog.Follow(g.Dir, func(c tasklog.Chunk) {
		write(record{Stream: c.Stream, Offset: c.Offset, Length: len(c.Data)}, c.Data)
	}, options)
	if q.Follow {
		s.over(ctx, g.Run)
	}
	_ = f.Stop(context.Background()) // a sink whose client is gone returns immediately
	attempts, err := tasklog.Attempts(g.Dir)
	if err != nil {
		write(record{Error: err.Error()}, nil)
	}
	write(record{End: &Listing{g.Dir, attempts}}, nil)
}

// served maps the protocol's names to a process's files.
var served = map[string]string{
	"stdout": tasklog.StdoutFile, "stderr": tasklog.StderrFile, "error": tasklog.ErrorFile, "result": tasklog.ResultFile,
	"start": tasklog.StartFile, "metrics": tasklog.MetricsFile,
}

// Files returns the names of the files that are served, excluding stacks.
func Files() []string { return slices.Sorted(maps.Values(served)) }

// FileName returns the protocol's name for a process's file, for [Client.ReadFile].
func FileName(file string) string {
	for name, of := range served {
		if of == file {
			return name
		}
	}
	return file // a stack file
}

// endTrailer contains the number of bytes sent if the file is complete.
const endTrailer = "Clusterrun-End"

func (s *Server) file(w http.ResponseWriter, r *http.Request, g grant) {
	rank, err := strconv.Atoi(r.PathValue("rank"))
	n, nErr := strconv.Atoi(r.PathValue("n"))
	name, known := served[r.PathValue("file")]
	if file := r.PathValue("file"); stacks.IsFile(file) {
		name, known = file, true
	}
	if err != nil || nErr != nil || !known {
		http.NotFound(w, r)
		return
	}
	path := filepath.Join(tasklog.ProcessDir(g.Dir, n, rank), name)
	if attempts, err := tasklog.Attempts(g.Dir); err == nil {
		if from, to, ok := tasklog.Pruned(attempts[rank]); ok && from <= n && n <= to {
			http.Error(w, fmt.Sprintf("attempts %d to %d of the task have been removed", from, to), http.StatusGone)
			return
		}
	}
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Trailer", endTrailer)
	sent, err := sendFile(w, path, info.Size())
	if err != nil {
		panic(http.ErrAbortHandler) // a trailer was announced
	}
	w.Header().Set(endTrailer, strconv.FormatInt(sent, 10))
}

// sendFile sends a file up to its earlier size, and returns the number of bytes sent.
func sendFile(out io.Writer, path string, size int64) (int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0) // because the file may be of any kind
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return io.Copy(out, io.LimitReader(f, size))
}
