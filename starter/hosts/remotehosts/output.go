package remotehosts

import (
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
)

// unfinished is how long the host holds back an incomplete line. It is short because the command
// itself waits for the rest of a line.
const unfinished = 20 * time.Millisecond

// output sends the run's logs as they grow, until the host worker has exited and all of them are
// sent.
func (s *service) output(w http.ResponseWriter, r *http.Request) {
	var in outputRequest
	if !read(w, r, &in) {
		return
	}
	out := &sender{pieces: gob.NewEncoder(flushed{w, http.NewResponseController(w)})}
	out.send(piece{}) // sends the headers
	dir := tasklog.RunDir(s.logs(), in.WorkflowID, in.RunID)
	follower := tasklog.Follow(dir, func(c tasklog.Chunk) {
		name := tasklog.StdoutFile
		if c.Stderr {
			name = tasklog.StderrFile
		}
		out.send(piece{Path: filepath.Join(tasklog.ProcessDir("", c.Attempt, c.Rank), name), Data: c.Data})
	}, tasklog.FollowOptions{
		Hold:    unfinished,
		OnError: func(err error) { out.send(piece{Problem: err.Error()}) },
	})
	select {
	case <-s.ended:
		_ = follower.Stop(context.WithoutCancel(r.Context())) // the reader may be slow
		if err := sendRest(dir, out); err != nil {
			out.send(piece{Problem: err.Error()})
		}
		out.send(piece{End: true})
	case <-r.Context().Done():
		_ = follower.Stop(r.Context())
	}
}

// sender writes pieces. It writes nothing after an error, so that the reader notices the missing
// end.
type sender struct {
	mu     sync.Mutex
	pieces *gob.Encoder
	broken bool
}

func (s *sender) send(p piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.broken {
		s.broken = s.pieces.Encode(p) != nil
	}
}

// sendRest sends all files except the processes' output: errors, results, times, stacks.
func sendRest(dir string, out *sender) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !d.Type().IsRegular(), d.Name() == tasklog.StdoutFile, d.Name() == tasklog.StderrFile:
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return sendFile(path, name, out)
	})
}

func sendFile(path, name string, out *sender) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			out.send(piece{Path: name, Data: buf[:n]})
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// copyOutput copies the run's logs into dir, the run's local directory, and returns nil once
// they are complete. It calls tell with errors reading them on the host, and unkept with what
// cannot be written locally.
func (h *host) copyOutput(ctx context.Context, in outputRequest, dir string, tell func(error), unkept func(path string, data []byte)) error {
	response, err := h.postJSON(ctx, "/output", in)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body := &io.LimitedReader{R: response.Body}
	pieces := gob.NewDecoder(body)
	known := map[string]bool{} // directories
	var incomplete error
	for {
		var p piece
		body.N = maxPiece
		if pieces.Decode(&p) != nil {
			if body.N <= 0 {
				return fmt.Errorf("it sends more than %d MiB of a file at a time", maxPiece>>20)
			}
			return errLost
		}
		switch {
		case p.End:
			return incomplete
		case p.Problem != "":
			tell(errors.New(p.Problem))
		case p.Path == "":
		default:
			if n, err := appendTo(dir, p, known); err != nil {
				incomplete = cmp.Or(incomplete, err)
				unkept(filepath.Join(dir, p.Path), p.Data[n:])
			}
		}
	}
}

// appendTo appends a piece to its file, and returns how many of its bytes are in the file.
func appendTo(dir string, p piece, known map[string]bool) (int, error) {
	if !filepath.IsLocal(p.Path) {
		return 0, fmt.Errorf("it sends %q, which is outside the logs", p.Path)
	}
	path := filepath.Join(dir, p.Path)
	if parent := filepath.Dir(path); !known[parent] {
		if err := tasklog.MakeDir(parent); err != nil {
			return 0, err
		}
		known[parent] = true
		if _, _, rank, ok := tasklog.SplitProcessDir(parent); ok {
			if err := tasklog.Prune(dir, rank, tasklog.KeepAttempts+1); err != nil {
				return 0, err
			}
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(p.Data)
	return n, errors.Join(err, f.Close())
}
