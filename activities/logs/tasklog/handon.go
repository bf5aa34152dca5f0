package tasklog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
)

// HandOn copies a process's error file to where the launcher that started this program expects this
// program's error file. torch's launcher does the same. It copies the bytes unchanged, except that
// a file in torch's form gets the process's exit code as message.errorCode if that is not 0.
// replaced reports whether an existing file was replaced.
//
// If the process left no error file, the error is [fs.ErrNotExist] and nothing is written.
func HandOn(from, to string, exitCode int) (replaced bool, err error) {
	b, _, err := ReadFile(from, maxReport)
	if err != nil {
		return false, fmt.Errorf("error file %w", err)
	}
	if source, err := os.Stat(from); err == nil {
		if old, err := os.Stat(to); err == nil && os.SameFile(source, old) {
			return false, nil
		}
	}
	return HandOnContent(b, to, exitCode)
}

// HandOnContent is like [HandOn], but is given the error file's content.
func HandOnContent(b []byte, to string, exitCode int) (replaced bool, err error) {
	if exitCode != 0 {
		b = withErrorCode(b, exitCode)
	}
	old, err := os.Stat(to)
	switch {
	case err == nil && !old.Mode().IsRegular():
		return false, fmt.Errorf("error file %s is not a file", to)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("error file %w", err)
	}
	if writeErr := atomicfile.Write(to, b, 0o644); writeErr != nil {
		return false, fmt.Errorf("error file %s: %w", to, writeErr)
	}
	return err == nil, nil
}

// withErrorCode adds the exit code to an error file in torch's form. It returns any other content
// unchanged.
func withErrorCode(b []byte, exitCode int) []byte {
	var file, message map[string]json.RawMessage
	if json.Unmarshal(b, &file) != nil || json.Unmarshal(file["message"], &message) != nil || message == nil {
		return b
	}
	message["errorCode"] = fmt.Append(nil, exitCode)
	inner, err := encode(message)
	if err != nil {
		return b
	}
	file["message"] = inner
	if whole, err := encode(file); err == nil {
		return whole
	}
	return b
}

// encode does not escape < and >, because they occur in call stacks, as in <module>.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
