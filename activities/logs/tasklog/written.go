package tasklog

import (
	"bytes"
	"os"
	"path/filepath"
	"time"
)

// StreamEnd is the last part of a process's stream, from the start of a line.
type StreamEnd struct {
	Text []byte
	// Offset is the start of Text in the stream.
	Offset int64
	// Written is the time of the last write to the stream, as precisely as the file system records
	// it.
	Written time.Time

	records []record
	stream  int
}

// StreamEnds reads at most maxBytes from the ends of stdout and stderr. It omits empty streams.
func StreamEnds(processDir string, maxBytes int64) []StreamEnd {
	var ends []StreamEnd
	var records []record
	for i, name := range outputs {
		path := filepath.Join(processDir, name)
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			continue
		}
		text, whole := tailOf(path, maxBytes)
		// More may have been written since, but only after the end of this part.
		e := StreamEnd{Text: text, Offset: max(0, info.Size()-int64(len(text))), Written: info.ModTime(), stream: i}
		if !whole {
			if at := bytes.IndexByte(text, '\n'); at >= 0 {
				e.Text, e.Offset = text[at+1:], e.Offset+int64(at)+1
			}
		}
		if records == nil {
			records = readTimes(processDir)
		}
		e.records = records
		ends = append(ends, e)
	}
	return ends
}

// Times returns two times between which the byte before the given offset was written. after is zero
// if there is no older record.
func (e StreamEnd) Times(offset int64) (after, by time.Time) {
	by = e.Written
	for _, r := range e.records {
		at := time.Unix(0, r.at)
		if r.sizes[e.stream] >= offset {
			if at.Before(by) {
				by = at
			}
			break
		}
		after = at
	}
	if offset >= e.Offset+int64(len(e.Text)) {
		// This is the last byte that was written, so its time is the file's modification time.
		after, by = e.Written.Add(-clockTick), e.Written
	}
	return after, by
}
