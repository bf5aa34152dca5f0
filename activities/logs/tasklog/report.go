package tasklog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"time"
)

// Report is an error that a program reported before it failed.
type Report struct {
	Message string
	// Callstack is empty if the program did not report one.
	Callstack string
	// Timestamp is the program's own; zero if it reported none.
	Timestamp time.Time
	// Written is the time of the last write to the file, by its file system's clock.
	Written time.Time
}

// writtenWithin is the maximum time between the timestamp in torch's error file and the moment when
// torch writes the file.
const writtenWithin = 2 * time.Second

// When returns the error's time as precisely as possible. torch writes whole seconds, which are too
// coarse to show which of several processes failed first. The file's modification time is more
// precise, and is used if it agrees with the timestamp or there is no timestamp.
func (r *Report) When() time.Time {
	switch late := r.Written.Sub(r.Timestamp); {
	case r.Timestamp.IsZero():
		return r.Written
	case r.Timestamp.Nanosecond() != 0, late < 0, late > writtenWithin:
		return r.Timestamp
	}
	return r.Written
}

// maxReport limits the size of an error file. Call stacks are much shorter.
const maxReport = 1 << 20

// ReadErrorFile reads an error file. There are two forms: torch's @record writes
//
//	{"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "…", "timestamp": "1700000000"}}}
//
// and the simple one is {"message": "x", "timestamp": 1700000000}. The timestamp is optional, and a
// number or a string. If the file does not exist, the report and the error are nil.
func ReadErrorFile(path string) (*Report, error) {
	b, written, err := ReadFile(path, maxReport)
	if err != nil {
		return nil, ignoreMissing(fmt.Errorf("error file %w", err))
	}
	r, err := parseReport(b)
	if err != nil {
		// The content may still show a person what happened.
		return nil, fmt.Errorf("error file %s is malformed: %w; it starts with %q", path, err, b[:min(len(b), 200)])
	}
	r.Written = written
	return r, nil
}

func parseReport(b []byte) (*Report, error) {
	var file struct {
		Message   json.RawMessage `json:"message"`
		Timestamp json.RawMessage `json:"timestamp"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, err
	}
	var r Report
	var err error
	switch {
	case len(file.Message) == 0 || bytes.Equal(file.Message, []byte("null")):
		return nil, errors.New(`it has no "message"`)
	case file.Message[0] == '{':
		var nested struct {
			Message   *string `json:"message"`
			ExtraInfo struct {
				Callstack string          `json:"py_callstack"`
				Timestamp json.RawMessage `json:"timestamp"`
			} `json:"extraInfo"`
		}
		if err := json.Unmarshal(file.Message, &nested); err != nil {
			return nil, err
		}
		if nested.Message == nil {
			return nil, errors.New(`its "message" has no "message"`)
		}
		r.Message, r.Callstack = *nested.Message, nested.ExtraInfo.Callstack
		r.Timestamp, err = parseTimestamp(nested.ExtraInfo.Timestamp)
	default:
		if err := json.Unmarshal(file.Message, &r.Message); err != nil {
			return nil, err
		}
		r.Timestamp, err = parseTimestamp(file.Timestamp)
	}
	r.Message = Printable([]byte(r.Message))
	return &r, err
}

// parseTimestamp parses seconds since 1970, given as a number or a string. 0 means none, as in
// torch.
func parseTimestamp(raw json.RawMessage) (time.Time, error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseFloat(string(bytes.Trim(raw, `"`)), 64)
	if err != nil || !(seconds >= 0 && seconds < 1e11) {
		return time.Time{}, fmt.Errorf(`its "timestamp" %s is not a number of seconds`, raw)
	}
	if seconds == 0 {
		return time.Time{}, nil
	}
	return time.UnixMicro(int64(math.Round(seconds * 1e6))), nil
}

// ErrTooLarge means that a file is larger than allowed.
var ErrTooLarge = errors.New("is too large")

// ReadResult reads the value that a process returned, and compacts the JSON. If the file is missing
// or empty, the value and the error are nil. If the file is larger than maxBytes, the error is
// [ErrTooLarge].
func ReadResult(path string, maxBytes int64) (json.RawMessage, error) {
	b, _, err := ReadFile(path, maxBytes)
	if err != nil {
		return nil, ignoreMissing(fmt.Errorf("result file %w", err))
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, nil
	}
	value, err := Value(expressed(b)) // Python's json.dump writes NaN without quotes
	if err != nil {
		return nil, fmt.Errorf("result file %s %w", path, err)
	}
	if int64(len(value)) > maxBytes { // a NaN is longer in value than in the file
		return nil, fmt.Errorf("result file %s %w", path, ErrTooLarge)
	}
	return value, nil
}

// ReadFile reads a whole regular file of at most maxBytes bytes, and returns when it was last
// written.
func ReadFile(path string, maxBytes int64) (b []byte, written time.Time, err error) {
	f, info, err := openRegular(path, os.O_RDONLY, 0)
	if errors.Is(err, errNotRegular) {
		return nil, written, fmt.Errorf("%s %w", path, err)
	}
	if err != nil {
		return nil, written, fmt.Errorf("%s: %w", path, errors.Unwrap(err))
	}
	defer f.Close()
	if info.Size() > maxBytes {
		return nil, written, fmt.Errorf("%s %w: it has %d bytes; the limit is %d", path, ErrTooLarge, info.Size(), maxBytes)
	}
	b, err = io.ReadAll(io.LimitReader(f, maxBytes))
	return b, info.ModTime(), err
}
