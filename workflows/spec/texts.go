package spec

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

// Texts of errors, in the words of the systems that users come from. Programs and people search
// logs for these, so they are kept unchanged.

// TwoChiefsText refuses a cluster with more than one chief.
func TwoChiefsText(chiefs int) string {
	return fmt.Sprintf("If chief exists in the cluster, there must be at most one chief. Current `cluster_spec` has %d chiefs.", chiefs)
}

// BadResult reports whether the process ended well but left an invalid result, such as one that
// is not JSON. Its message says what is wrong with it.
func (e Exit) BadResult() bool {
	return e.Cause == CauseOrigin && e.ExitCode == 0 && !e.EndedInCall()
}

// EndedInCall reports whether the process exited with 0 in the middle of a call of a
// closure.
func (e Exit) EndedInCall() bool { return e.Cause == CauseOrigin && e.ExitCode == 0 && e.Call != "" }

// UnknownCall is the call of a process that served and exited with 0 while its host worker was
// down: it is unknown whether the process was in a call.
const UnknownCall = "unknown"

// InCallText returns a phrase for the call in which the process exited with 0.
func (e Exit) InCallText() string {
	if e.Call == UnknownCall {
		return "while it was serving calls and its host worker was down"
	}
	return "in the middle of a call, " + e.Call
}

// OOMText says what the kernel has killed to free memory while the process ran.
func (e Exit) OOMText() string {
	text := "the kernel killed " + plural.Of(e.OOMKills, "process", "processes")
	switch e.OOMScope {
	case "task":
		return text + " of the task to free memory"
	case "cgroup":
		return text + " to free memory while it ran, in the cgroup of the host worker"
	}
	return text + " to free memory while it ran, on the host"
}

// StoppedByHost reports whether the host worker stopped the process because it was itself
// ended. The process was not lost then, and its exit is known.
func (e Exit) StoppedByHost() bool {
	return e.Cause == CauseHostLost && (e.ExitCode >= 0 || e.Signal != "")
}

// NoAnswerText is the reason for the failure of an activity that no host worker took or
// answered.
const NoAnswerText = "its host worker did not answer in time"

// SilenceText returns the signs of work that a silent task does not show.
func SilenceText(ignoresCPU bool) string {
	if ignoresCPU {
		return "no output and no progress"
	}
	return "no output, no progress and no processor time"
}

// TaskRunningText refuses to start a task that is running.
func TaskRunningText(task string) string {
	return task + " is running; `clusterrun restart` restarts it"
}

// EscapeControl shows the control characters of a text, but not its lines and tabs, so that it
// is safe for a terminal.
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

// OneLine returns a text that is safe as a part of a line: it has no control characters for a
// terminal, and does not end the line.
func OneLine(text string) string { return EscapeControl(strings.Join(strings.Fields(text), " ")) }
