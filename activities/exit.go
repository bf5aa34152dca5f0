package activities

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/evidence"
	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const sigkill = int(unix.SIGKILL)

// A failure without an error file is explained by the last stderrLines lines of stderr, with up to
// frameLines lines before them if they start within a frame.
const stderrLines, frameLines = 8, 3

// maxReported limits the line for a reported error among the printed errors, in bytes.
const maxReported = 240

// exitOf converts the supervisor's record of an exit without reading any file.
func exitOf(p supervisor.Process, owned bool) spec.Exit {
	e := spec.Exit{
		Restart: p.Number, PID: p.PID, LogDir: p.LogDir, Started: p.Started,
		ExitCode: p.Exit.Code, Cause: causeOf(p.Exit, owned),
		Ended: p.Exit.Ended, BootNanos: p.Exit.BootNanos, Unkillable: p.Exit.Unkillable, DroppedBytes: p.Exit.Dropped,
		Message: p.Exit.StartError, OOMKills: p.Exit.OOMKills, OOMScope: p.Exit.OOMScope,
		Usage: usageOf(p.Exit.Usage),
	}
	if p.Exit.Reason == supervisor.ReasonNone {
		e.LeftBehind = p.Exit.Killed
	}
	if p.Exit.Code < 0 {
		e.Signal = spec.SignalName(-p.Exit.Code)
	}
	if p.Exit.Lost {
		e.Signal = ""
	}
	return e
}

// causeOf returns why a process exited. A process that exits with 0 despite a collateral stop has
// completed, and a process killed by our signal has not failed.
func causeOf(e *supervisor.Exit, owned bool) spec.Cause {
	switch {
	case e.Lost:
		return spec.CauseHostLost
	case e.StartError != "":
		return spec.CauseOrigin
	case e.Reason == supervisor.ReasonNone && e.Code == 0, e.Reason == supervisor.ReasonCollateral && e.Code == 0:
		return spec.CauseCompleted
	}
	switch e.Reason {
	case supervisor.ReasonCollateral:
		return spec.CauseCollateral
	case supervisor.ReasonTerminate, supervisor.ReasonRestart:
		return spec.CauseOperator
	case supervisor.ReasonMaxRunTime:
		return spec.CauseTimeout
	case supervisor.ReasonCutOff:
		return spec.CauseHostLost
	case supervisor.ReasonOOM:
		return spec.CauseOOM
	case supervisor.ReasonLogQuota:
		return spec.CauseLogQuota
	case supervisor.ReasonSilence:
		return spec.CauseSilence
	case supervisor.ReasonShutdown:
		if owned {
			return spec.CauseOperator
		}
		return spec.CauseHostLost
	}
	return spec.CauseOrigin
}

// describeExit returns the complete description of an exit on host: the supervisor's record and
// what the process left in its files.
func describeExit(host string, p supervisor.Process, owned bool) (spec.Exit, json.RawMessage) {
	e := exitOf(p, owned)
	if p.LogDir == "" {
		return e, nil
	}
	// Output after the last heartbeat counts as written when the process exited.
	times := tasklog.NewTimes(p.LogDir)
	times.NoteEnd(p.Exit.Ended)
	e.Usage.OutputBytes = times.Written()
	file := filepath.Join(p.LogDir, tasklog.ErrorFile)
	report, malformed := tasklog.ReadErrorFile(file)
	switch {
	case malformed != nil:
		// The file reports nothing, but must not be ignored: it was meant to contain the
		// explanation.
		e.Message, e.ErrorFile = shorten.Text(malformed.Error(), maxMessage/2), file
	case report != nil:
		e.Message, e.Reported = report.Message, e.Cause.ByItself() || p.Exit.Failed
		e.ErrorFile, e.ErrorTime = file, report.When().UTC()
	}
	if e.Cause != spec.CauseCompleted {
		e.TraceFile = tasklog.TraceFile(p.LogDir)
	}
	if e.Cause.ByItself() || p.Exit.Failed && e.Cause != spec.CauseCompleted {
		e.Printed = printedError(p.LogDir)
		if report != nil && e.Reported {
			e.Printed = withReport(e.Printed, report)
		}
	}
	switch e.Cause {
	case spec.CauseCompleted:
		// It did not fail, even if it once reported an error.
		e.Message, e.ErrorTime = "", time.Time{}
		file := filepath.Join(p.LogDir, tasklog.ResultFile)
		value, err := tasklog.ReadResult(file, taskapi.MaxResult)
		switch {
		case errors.Is(err, tasklog.ErrTooLarge):
			e.ValueFile = file
		case err != nil:
			// An undeliverable value must not look like success.
			e.Cause, e.Message = spec.CauseOrigin, err.Error()
		}
		return bound(e), value
	case spec.CauseOrigin:
		e.Message = strings.TrimSpace(fromWhom(e, p.Exit.Sent) + "\n" + e.Message)
		if p.Exit.StartError == "" && (report == nil || report.Message == "") {
			words := fromFrame(tasklog.LastLines(filepath.Join(p.LogDir, tasklog.StderrFile), stderrLines+frameLines, maxMessage-len(e.Message)-1))
			e.Message = strings.Trim(e.Message+"\n"+words, "\n")
		}
		if e.Message == "" && e.Signal != "" {
			e.Message = fmt.Sprintf("Signal %d (%s) received by PID %d", -e.ExitCode, e.Signal, e.PID)
		}
	case spec.CauseOOM:
		limit := p.Exit.Detail
		if limit != "" {
			limit += "; "
		}
		e.Message = strings.TrimSpace(limit + e.OOMText() + "\n" + e.Message)
	case spec.CauseLogQuota, spec.CauseSilence:
		e.Message = strings.TrimSpace(p.Exit.Detail + "\n" + e.Message)
	case spec.CauseHostLost:
		switch {
		case p.Exit.Reason == supervisor.ReasonCutOff:
			e.Message = strings.TrimSpace(fmt.Sprintf("host %s could not reach the Temporal server for too long (on_disconnect), and stopped it\n%s", host, e.Message))
		case e.Message != "":
		case e.StoppedByHost():
			e.Message = fmt.Sprintf("the host worker on %s was stopped together with its tasks", host)
			if p.Exit.Detail != "" {
				e.Message += ": " + p.Exit.Detail
			}
		default:
			e.Message = fmt.Sprintf("the process was lost because the supervisor on host %s, or the machine, died", host)
		}
	}
	return bound(e), nil
}

// fromWhom returns who sent the signal that killed a process, if the sender is of interest. sent
// reports whether a request had sent it.
func fromWhom(e spec.Exit, sent bool) string {
	switch {
	case sent:
		return e.Signal + " came from a request, such as `clusterrun signal`"
	case e.Signal != "SIGKILL" || e.Reported:
		return ""
	case e.OOMKills > 0:
		return "likely out of memory: " + e.OOMText()
	}
	return "clusterrun did not send SIGKILL: the program itself or another process did"
}

// fromFrame returns the last lines of words, starting with a whole frame of a Python traceback.
func fromFrame(words string) string {
	lines := strings.Split(words, "\n")
	is := func(at int, prefix string) bool { return strings.HasPrefix(lines[at], prefix) }
	begin := max(0, len(lines)-stderrLines)
	const frame, rest = `  File "`, "    "
	at := begin
	for at > 0 && is(at, rest) {
		at--
	}
	if !is(at, frame) { // the frame starts too far up
		for at = begin; at < len(lines)-1 && is(at, rest); {
			at++
		}
	}
	if is(at, frame) {
		begin = at
	}
	return strings.Join(lines[begin:], "\n")
}

// withReport returns the printed error of a process that has also reported an error. printed may
// be nil.
func withReport(printed *spec.PrintedError, report *tasklog.Report) *spec.PrintedError {
	if printed == nil {
		line, _, _ := strings.Cut(report.Message, "\n")
		printed = &spec.PrintedError{Kind: "reported", Line: shorten.Text(line, maxReported), By: report.When().UTC()}
	}
	printed.LostPeer = printed.LostPeer || evidence.SpeaksOfPeer(report.Message)
	printed.Survivable = false
	return printed
}

// describeExit calls the function describeExit as the user who owns the files.
func (h *Host) describeExit(p *plan, q supervisor.Process) (e spec.Exit, value json.RawMessage) {
	user, err := p.userOf(q)
	if err == nil {
		err = user.Do(func() error {
			e, value = describeExit(h.Name, q, h.Owned)
			return nil
		})
	}
	if err != nil {
		e = unread(exitOf(q, h.Owned), err)
	}
	if full := shmFull(); full != "" && e.Cause.ByItself() {
		e.Message = strings.TrimLeft(e.Message+"\n"+full, "\n")
		e = bound(e)
	}
	if e.Cause != spec.CauseCompleted && e.PID != 0 {
		if x, ok := resources.XidOf(e.PID, e.Started, e.Ended); ok {
			e.Xid, e.GPUError = x.Number, shorten.Text(x.String(), maxReported)
		}
	}
	return e, value
}

// unread adds to an exit the reason why its process's files could not be read.
func unread(e spec.Exit, why error) spec.Exit {
	e.Message = strings.Trim(e.Message+"\n"+why.Error(), "\n")
	return bound(e)
}

func bound(e spec.Exit) spec.Exit {
	e.Message = bounded(e.Message)
	return e
}

// attemptsOf returns a launch's history for the restart policy.
func (p *plan) attemptsOf(processes []supervisor.Process, launch int, owned bool) []lifecycle.Attempt {
	var out []lifecycle.Attempt
	for _, q := range processes {
		if q.Launch != launch || q.Exit == nil {
			continue
		}
		out = append(out, lifecycle.Attempt{
			Cause:           causeOf(q.Exit, owned),
			OperatorRestart: q.Exit.Reason == supervisor.ReasonRestart,
			Lived:           lived(q),
		})
	}
	return out
}

func lived(p supervisor.Process) time.Duration { return max(0, p.Exit.Ended.Sub(p.Started)) }

// restartsOf counts a launch's restarts. The supervisor keeps each launch's first process.
func restartsOf(processes []supervisor.Process, launch int) int {
	first, last := -1, -1
	for _, p := range processes {
		if p.Launch != launch {
			continue
		}
		if last = p.Number; first < 0 {
			first = p.Number
		}
	}
	return last - first
}
