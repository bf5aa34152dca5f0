package spec

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// Error messages in the wording of other systems, which users know. Programs and people search logs
// for these messages, so they must not change.

// TwoChiefsText refuses a cluster with more than one chief.
func TwoChiefsText(chiefs int) string {
	return fmt.Sprintf("If chief exists in the cluster, there must be at most one chief. Current `cluster_spec` has %d chiefs.", chiefs)
}

// BadResult reports whether the process succeeded but left an invalid result, such as one that is
// not JSON. Its message describes the problem.
func (e Exit) BadResult() bool {
	return e.Cause == CauseOrigin && e.ExitCode == 0
}

// OOMText describes what the kernel killed to free memory while the process ran.
func (e Exit) OOMText() string {
	text := "the kernel killed " + units.Count(e.OOMKills, "process", "processes")
	switch e.OOMScope {
	case "task":
		return text + " of the task to free memory"
	case "cgroup":
		return text + " to free memory while it ran, in the cgroup of the host worker"
	}
	return text + " to free memory while it ran, on the host"
}

// StoppedByHost reports whether the host worker stopped the process because it was stopping itself.
// In this case, the process is not lost, and its exit is known.
func (e Exit) StoppedByHost() bool {
	return e.Cause == CauseHostLost && (e.ExitCode >= 0 || e.Signal != "")
}

// NoAnswerText is the failure reason of an activity that no host worker accepted or answered.
const NoAnswerText = "its host worker did not answer in time"

// SilenceText lists the signs of work that a silent task lacks.
func SilenceText(ignoresCPU bool) string {
	if ignoresCPU {
		return "no output and no progress"
	}
	return "no output, no progress and no processor time"
}

// TaskRunningText refuses to start a running task.
func TaskRunningText(task string) string {
	return task + " is running; `clusterrun restart` restarts it"
}

// EscapeControl escapes control characters except newlines and tabs, so that text is safe for a
// terminal.
func EscapeControl(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return b.String()
}

// OneLine makes text safe as part of a line, by escaping newlines and control characters.
func OneLine(text string) string { return EscapeControl(strings.Join(strings.Fields(text), " ")) }
