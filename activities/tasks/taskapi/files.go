package taskapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// MaxResult limits a task's return value, in bytes of JSON.
const MaxResult = wire.MaxResult

// maxErrorFile limits how much of an error file is read, in bytes.
const maxErrorFile = 1 << 20

// putResult stores a task's return value.
func putResult(r *request) (any, *wire.Problem) {
	dir, problem := r.logDir("a result")
	if problem != nil {
		return nil, problem
	}
	// White space does not count, but its amount is also limited.
	b, problem := r.body(4 * wire.MaxResult)
	if problem != nil && problem.Code == wire.CodeTooLarge {
		return nil, tooLargeResult()
	} else if problem != nil {
		return nil, problem
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, invalid("", "the body is empty; send the result as one JSON value, such as 0.97 or null")
	}
	value, err := tasklog.Value(b)
	switch {
	case err != nil:
		return nil, invalid("", "the result "+err.Error())
	case len(value) > wire.MaxResult:
		return nil, tooLargeResult()
	}
	if err := r.write(filepath.Join(dir, tasklog.ResultFile), value); err != nil {
		return nil, internal(fmt.Errorf("cannot store the result: %w", err))
	}
	return wire.Done{OK: true}, nil
}

// write writes a task's file, as its user.
func (r *request) write(path string, b []byte) error {
	return r.endpoint.view().User.Do(func() error {
		return atomicfile.Write(path, b, tasklog.FileMode(filepath.Dir(path)))
	})
}

func tooLargeResult() *wire.Problem {
	return &wire.Problem{Code: wire.CodeTooLarge, Message: fmt.Sprintf(
		"the result exceeds the limit of %d bytes for results that are sent: write it to the file that CLUSTERRUN_RESULT_FILE names", wire.MaxResult)}
}

// logDir returns the directory with the process's files.
func (r *request) logDir(what string) (string, *wire.Problem) {
	dir := r.endpoint.view().LogDir
	if dir == "" {
		return "", &wire.Problem{Code: wire.CodeNoFiles, Message: "cannot store " + what + ": the run keeps no files; start it with a log directory (logs.dir, --log-dir)"}
	}
	return dir, nil
}

// putError stores the error that a task reports about itself, in the format of torch's @record.
func putError(r *request) (any, *wire.Problem) {
	dir, problem := r.logDir("an error")
	if problem != nil {
		return nil, problem
	}
	var in wire.Error
	if problem := r.decode(&in, maxErrorBody); problem != nil {
		return nil, problem
	}
	if problem := checkError(in, ""); problem != nil {
		return nil, problem
	}
	b, err := errorFile(in)
	if err == nil {
		err = r.write(filepath.Join(dir, tasklog.ErrorFile), b)
	}
	if err != nil {
		return nil, internal(fmt.Errorf("cannot store the error: %w", err))
	}
	return wire.Done{OK: true}, nil
}

// checkError checks an error. prefix is the path of its fields.
func checkError(e wire.Error, prefix string) *wire.Problem {
	switch {
	case e.Message == "" && e.Kind == "":
		return invalid(prefix+"message", "it is missing")
	case e.Timestamp < 0 || e.Timestamp >= 1e11:
		return invalid(prefix+"timestamp", "must be seconds since 1970")
	}
	return nil
}

// errorFile returns an error in torch's nested form. It shortens long strings; a traceback's end
// is its most useful part.
func errorFile(e wire.Error) ([]byte, error) {
	message := e.Message
	if e.Kind != "" {
		message = e.Kind
		if e.Message != "" {
			message += ": " + e.Message
		}
	}
	at := time.Now()
	if e.Timestamp > 0 {
		at = time.UnixMicro(int64(math.Round(e.Timestamp * 1e6)))
	}
	type extra struct {
		Callstack string `json:"py_callstack"`
		Timestamp string `json:"timestamp"`
	}
	type nested struct {
		Message   string `json:"message"`
		ExtraInfo extra  `json:"extraInfo"`
	}
	for keep := wire.MaxTraceback; ; keep /= 4 {
		b, err := json.Marshal(map[string]nested{"message": {
			Message: shorten.Text(message, wire.MaxMessage),
			// The timestamp is in whole seconds, because torch's reader accepts nothing else.
			ExtraInfo: extra{shorten.Traceback(e.Traceback, keep), strconv.FormatInt(at.Unix(), 10)},
		}})
		if err != nil || len(b) <= maxErrorFile {
			return b, err
		}
	}
}
