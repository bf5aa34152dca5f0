package supervisor

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// compactFrom is the size from which a journal is compacted, in bytes.
const compactFrom = 512 << 10

// compactLocked rewrites the file without the omitted processes ([task.omit]), each time the
// file has doubled. If that fails, the file stays as it is. j.mu must be held.
func (j *journal) compactLocked() {
	// A sync that is in progress uses the present file.
	if j.size < max(j.compactAt, compactFrom) || j.syncing {
		return
	}
	defer func() { j.compactAt = 2 * j.size }()
	raw, err := os.ReadFile(j.path)
	if err != nil || int64(len(raw)) != j.size {
		return
	}
	text, ok := compact(raw, strings.TrimSuffix(filepath.Base(j.path), ".jsonl"))
	if !ok || atomicfile.WriteSynced(j.path, text, 0o600) != nil {
		return
	}
	_ = j.f.Close()
	j.f, j.size = nil, int64(len(text))
	// If this fails, the next record opens the file.
	_ = j.openLocked()
}

// compact returns a journal without what is omitted, and false if it cannot be read.
func compact(raw []byte, hash string) ([]byte, bool) {
	r := newRun(hash, runkey.Run{})
	var records []record
	var lines [][]byte // of the records: a later version may have written more fields
	for line := range bytes.Lines(raw) {
		var rec record
		if json.Unmarshal(line, &rec) != nil || !r.replay(rec) {
			return nil, false
		}
		records, lines = append(records, rec), append(lines, line)
	}
	kept := make(map[taskID]map[int]bool)
	for id, t := range r.tasks {
		kept[id] = make(map[int]bool)
		for _, p := range t.processes {
			kept[id][p.Number] = true
		}
	}
	var out []byte
	next := make(map[taskID]int)
	put := func(rec record) bool {
		line, err := encode(rec)
		out = append(out, line...)
		return err == nil
	}
	for i, rec := range records {
		id := taskID{rec.Generation, rec.Task}
		switch rec.Type {
		case recLeased:
			if r.isOmitted(rec.Generation) {
				continue
			}
		case recOmitted:
			continue // written again
		case recStarting, recStarted, recAborted, recExited, recGranted:
			if !kept[id][rec.Number] {
				continue
			}
		}
		if rec.Type == recStarting {
			if rec.Number > next[id] && !put(record{Type: recOmitted, At: rec.At, Generation: id.generation, Task: id.name, Number: rec.Number}) {
				return nil, false
			}
			next[id] = rec.Number + 1
		}
		out = append(out, lines[i]...)
	}
	return out, true
}
