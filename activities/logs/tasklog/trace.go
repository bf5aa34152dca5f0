package tasklog

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// TraceFile returns the path of the file that torch's Flight Recorder wrote for the process with
// that log directory or one of its descendants. It returns the most recent of several, or "" if
// there are none.
func TraceFile(logDir string) string {
	entries, err := os.ReadDir(logDir)
	if err != nil {
		return ""
	}
	var (
		path string
		last time.Time
	)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), TracePrefix) {
			continue
		}
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && info.Size() > 0 && (path == "" || info.ModTime().After(last)) {
			path, last = filepath.Join(logDir, e.Name()), info.ModTime()
		}
	}
	return path
}
