package spec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestUnexpectedExitText_MPR16_MPR17_SEED21(t *testing.T) {
	assert.Equal(t, "Subprocess worker-0 exited with exit code 10. See logs for details.", UnexpectedExitText("worker-0", Exit{ExitCode: 10}))
	assert.Contains(t, UnexpectedExitText("chief-0", Exit{ExitCode: 20}), "Subprocess chief-0 exited with exit code 20")
}

// A signal is an error, and named (D-01, D-02).
func TestUnexpectedExitText_MPR14_MPR15(t *testing.T) {
	text := UnexpectedExitText("worker-0", Exit{ExitCode: -11, Signal: "SIGSEGV"})
	assert.Contains(t, text, "Subprocess worker-0 exited with exit code")
	assert.Equal(t, "Subprocess worker-0 exited with exit code -11 (SIGSEGV). See logs for details.", text)
	assert.Equal(t, text, UnexpectedExitText("worker-0", Exit{ExitCode: -11}))
	assert.Equal(t, "Subprocess chief-0 exited with exit code -35 (<N/A>). See logs for details.", UnexpectedExitText("chief-0", Exit{ExitCode: -35}))
}

// What went well but for its result says so, and not that an exit code of 0 is
// the failure.
func TestTextsOfABadResult(t *testing.T) {
	e := Exit{Cause: CauseOrigin, Message: "result file /r is not one JSON value"}
	assert.Equal(t, "Subprocess worker-0 exited with exit code 0, but what it returned cannot be used: result file /r is not one JSON value", UnexpectedExitText("worker-0", e))
	assert.Equal(t, e.Message, FailureMessage(e))
	assert.False(t, Exit{Cause: CauseOrigin, ExitCode: -9}.BadResult())
	assert.False(t, Exit{Cause: CauseCompleted}.BadResult())
}

func TestFailureMessage_TE17_TE31_TE61_TE62_SEED87(t *testing.T) {
	assert.Equal(t, "Signal 1 (SIGHUP) received by PID 123", FailureMessage(Exit{ExitCode: -1, PID: 123}))
	assert.Equal(t, "Signal 11 (SIGSEGV) received by PID 7", FailureMessage(Exit{ExitCode: -11, PID: 7, Signal: "SIGSEGV"}))
	assert.Equal(t, "Signal 35 (<N/A>) received by PID 7", FailureMessage(Exit{ExitCode: -35, PID: 7}))
	assert.Equal(t, "Process failed with exitcode 138", FailureMessage(Exit{ExitCode: 138}))
	assert.Equal(t, "Process failed with exitcode 1\nboom", FailureMessage(Exit{ExitCode: 1, Message: "boom\n"}), "D-08")
}

func TestTimeoutText_SEED19(t *testing.T) {
	assert.Equal(t, "One or more subprocesses timed out, where timeout was set to 90s. Please change the `timeout` of the run spec if it should be adjusted.", TimeoutText(90*time.Second))
	assert.Contains(t, TimeoutText(1500*time.Millisecond), "set to 1.5s.")
	assert.Contains(t, TimeoutText(0), "set to 0s.")
}

func TestMaxRunTimeText_D03(t *testing.T) {
	assert.Contains(t, MaxRunTimeText(20*time.Second), "`max_run_time`, which was set to 20s.")
}

func TestOtherTexts(t *testing.T) {
	assert.Equal(t, "worker-7 does not exist", NoSuchTaskText("worker-7"), "SEED-24")
	assert.Equal(t, "worker-1 is running; use restart-task", TaskRunningText("worker-1"))
	assert.Contains(t, HostLostText("worker-1", "host-a"), "worker-1 was lost with its host host-a")
	assert.Equal(t, "Subprocess worker-1 was stopped by its host host-a.", HostStoppedText("worker-1", "host-a"))
	assert.Equal(t, "Subprocess worker-1 was stopped by its host.", HostStoppedText("worker-1", ""))
}

func TestTextsOfAnEndInTheMiddleOfACall(t *testing.T) {
	e := Exit{Cause: CauseOrigin, Call: "closure 7 of train", Message: "last words"}
	assert.False(t, e.BadResult())
	assert.Equal(t, "Subprocess worker-0 exited with exit code 0 in the middle of a call, closure 7 of train. See logs for details.", UnexpectedExitText("worker-0", e))
	assert.Equal(t, "Process ended with exitcode 0 in the middle of a call, closure 7 of train\nlast words", FailureMessage(e))
}

func TestVisible(t *testing.T) {
	assert.Equal(t, "a\n\tb ü", Visible("a\n\tb ü"))
	assert.Equal(t, `\x1b[31mred\a\r\u202e\u0085`, Visible("\x1b[31mred\a\r\u202e\u0085"))
	assert.Equal(t, "\uFFFD", Visible("\xff"))
	assert.Equal(t, `a b \x1b[31mc`, Cell(" a\n\tb\r\x1b[31mc\n"))
}
