package activities

import (
	"os"
	"path/filepath"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/evidence"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// maxEvidence is how much of the end of each stream is searched for errors, in bytes. It is
// searched only when the process has failed or is about to be stopped.
const maxEvidence = 128 << 10

// printedError returns the error in the output of a process that ended it, or is about to; nil
// if there is none.
func printedError(logDir string) *spec.PrintedError {
	if logDir == "" {
		return nil
	}
	var found []evidence.Dated
	var last time.Time
	for _, end := range tasklog.StreamEnds(logDir, maxEvidence) {
		if end.Written.After(last) {
			last = end.Written
		}
		for _, f := range evidence.Scan(end.Text, end.Offset) {
			after, by := end.Times(f.End)
			found = append(found, evidence.Dated{Finding: f, After: after, By: by})
		}
	}
	f := evidence.Choose(found, last)
	if f == nil {
		return nil
	}
	return &spec.PrintedError{
		Kind: f.Kind, Line: f.Line, Place: f.Place, LostPeer: f.LostPeer, Survivable: f.Survived,
		After: f.After.UTC(), By: f.By.UTC(),
	}
}

// showsError reports whether a process has reported an error, or printed one that programs end
// with. Errors that speak of a lost peer count too: such a process is about to end. If the file
// system does not answer, it returns false.
func (l *taskLease) showsError(p supervisor.Process) bool {
	if p.LogDir == "" {
		return false
	}
	user, err := l.plan.userOf(p)
	if err != nil {
		return false
	}
	found := make(chan bool, 1)
	go func() { // not in the group: the end of the host does not wait for it
		shows := false
		_ = user.Do(func() error {
			_, err := os.Stat(filepath.Join(p.LogDir, tasklog.ErrorFile))
			if shows = err == nil; !shows {
				// What is there now was printed before the stop.
				tasklog.NewTimes(p.LogDir).Note()
				e := printedError(p.LogDir)
				shows = e != nil && !e.Survivable
			}
			return nil
		})
		found <- shows
	}()
	select {
	case is := <-found:
		return is
	case <-time.After(lookPatience):
		return false
	}
}

// lookPatience is how long the file system may take to answer before a process is stopped.
const lookPatience = time.Second
