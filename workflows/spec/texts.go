package spec

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Texts of errors, in the words of the systems that users come from. Programs
// and people search logs for these, so they are kept even where we would have
// said it otherwise.

// TwoChiefsText refuses a cluster with more than one chief.
func TwoChiefsText(chiefs int) string {
	return fmt.Sprintf("If chief exists in the cluster, there must be at most one chief. Current `cluster_spec` has %d chiefs.", chiefs)
}

// UnexpectedExitText returns the error of a run whose task ended badly without
// reporting why. A signal is named beside the exit code, which is
// negative then.
func UnexpectedExitText(task string, e Exit) string {
	if e.BadResult() {
		return fmt.Sprintf("Subprocess %s exited with exit code 0, but what it returned cannot be used: %s", task, e.Message)
	}
	if e.EndedInCall() {
		return fmt.Sprintf("Subprocess %s exited with exit code 0 %s. See logs for details.", task, e.InCallText())
	}
	code := strconv.Itoa(e.ExitCode)
	if signal := e.signalName(); signal != "" {
		code += " (" + signal + ")"
	}
	return fmt.Sprintf("Subprocess %s exited with exit code %s. See logs for details.", task, code)
}

// FailureMessage returns the message of a [ProcessFailure] whose process left no
// error of its own: torch's words and, below them, the last
// lines of its stderr, which the exit carries as its message.
func FailureMessage(e Exit) string {
	if e.BadResult() {
		return e.Message
	}
	text := fmt.Sprintf("Process failed with exitcode %d", e.ExitCode)
	switch {
	case e.EndedInCall():
		text = "Process ended with exitcode 0 " + e.InCallText()
	case e.ExitCode < 0:
		text = fmt.Sprintf("Signal %d (%s) received by PID %d", -e.ExitCode, e.signalName(), e.PID)
	}
	if tail := strings.TrimRight(e.Message, "\n"); tail != "" {
		text += "\n" + tail
	}
	return text
}

// BadResult reports whether the process ended well and left a result that is
// none, such as one that is not JSON. Its message says what is wrong with it.
func (e Exit) BadResult() bool {
	return e.Cause == CauseOrigin && e.ExitCode == 0 && !e.EndedInCall()
}

// EndedInCall reports whether the process exited with 0 in the middle of a call of a
// closure.
func (e Exit) EndedInCall() bool { return e.Cause == CauseOrigin && e.ExitCode == 0 && e.Call != "" }

// UnknownCall is the call of a process that served and exited with 0 while its host worker
// was down: nobody knows whether it was in one.
const UnknownCall = "unknown"

// InCallText is in the middle of what the process exited with 0.
func (e Exit) InCallText() string {
	if e.Call == UnknownCall {
		return "while it served and its host worker was down, without having left"
	}
	return "in the middle of a call, " + e.Call
}

// TimeoutText returns the error of a run whose timeout passed.
func TimeoutText(timeout time.Duration) string {
	return fmt.Sprintf("One or more subprocesses timed out, where timeout was set to %ss. Please change the `timeout` of the run spec if it should be adjusted.", seconds(timeout))
}

// MaxRunTimeText returns the error of a run that was killed at max_run_time.
func MaxRunTimeText(limit time.Duration) string {
	return fmt.Sprintf("One or more subprocesses were killed because the run reached its `max_run_time`, which was set to %ss. Please change the `max_run_time` of the run spec if it should be adjusted.", seconds(limit))
}

// StragglersText names the tasks that did not stop together with the others in
// time: the seed's words, with tasks in place of its threads.
func StragglersText(tasks []string) string {
	return "Coordinator stopped with tasks still running: " + strings.Join(tasks, " ")
}

// HostLostText returns the error of a run that lost a host under a task.
func HostLostText(task, host string) string {
	return fmt.Sprintf("Subprocess %s was lost with its host %s. Its exit code is not known.", task, host)
}

// HostStoppedText returns the error of a run whose task was stopped by its host, for a
// reason of the host's own.
func HostStoppedText(task, host string) string {
	return strings.TrimRight(fmt.Sprintf("Subprocess %s was stopped by its host %s", task, host), " ") + "."
}

// StoppedByHost reports whether the process was not lost with its host but stopped by
// it, as it is when the host worker is told to end: how it ended is known then.
func (e Exit) StoppedByHost() bool {
	return e.Cause == CauseHostLost && (e.ExitCode >= 0 || e.Signal != "")
}

// NoAnswerText is why an activity failed that no host worker took, or that none answered.
const NoAnswerText = "its host worker did not answer in time"

// SilenceText returns what a silent task shows nothing of.
func SilenceText(ignoresCPU bool) string {
	if ignoresCPU {
		return "no output and no progress"
	}
	return "no output, no progress and no processor time"
}

// NoSuchTaskText refuses a request that names a task the run does not have.
func NoSuchTaskText(task string) string { return task + " does not exist" }

// TaskRunningText refuses to start a task that is running.
func TaskRunningText(task string) string { return task + " is running; use " + UpdateRestartTask }

// seconds writes a duration in seconds, without a fraction that is zero.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// signalName returns the name of the signal that ended the process, [NoSignal] when
// that has none, and empty when it was not a signal.
func (e Exit) signalName() string {
	switch {
	case e.Signal != "":
		return e.Signal
	case e.ExitCode < 0:
		return SignalName(-e.ExitCode)
	default:
		return ""
	}
}

// Visible shows the control characters of a text, but not its lines and tabs, so that it
// is safe for a terminal.
func Visible(text string) string {
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

// Cell returns a text as a part of a line that people read: it steers no terminal, and what
// follows it cannot look like another line.
func Cell(text string) string { return Visible(strings.Join(strings.Fields(text), " ")) }
