package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// RunRef identifies a run's generation to other workflows. Each generation has separate barriers. A
// closure queue serves all generations, so it omits Generation.
type RunRef struct {
	WorkflowID string `json:"workflow_id"`
	// RunID is the execution. It distinguishes successive runs with the same workflow ID.
	RunID      string `json:"run_id"`
	Generation int    `json:"generation"`
}

// BarrierInput is a round's input. The host of the first arrival opens the round, with the
// participants that it knows of.
type BarrierInput struct {
	Run   RunRef `json:"run"`
	Name  string `json:"name"`
	Round int    `json:"round"` // from 0
	// Participants are the tasks that must arrive, sorted.
	Participants []string `json:"participants"`
}

// BarrierMessage signals to a round that some of a host's tasks have arrived, or have left without
// being released.
type BarrierMessage struct {
	Host string `json:"host"`
	// Queue is the host worker's queue, for [ActivityBarrierCheck].
	Queue string `json:"queue"`
	// Digest is the [ParticipantsDigest] of the tasks that the host's tasks wait for. Their names
	// are in the [BarrierInput].
	Digest    string              `json:"digest"`
	Arrived   []BarrierArrival    `json:"arrived,omitempty"`
	Withdrawn []BarrierWithdrawal `json:"withdrawn,omitempty"`
}

// BarrierArrival is a task's arrival.
type BarrierArrival struct {
	Task string `json:"task"`
	// Key identifies the arrival. A repeated key is the same arrival.
	Key string `json:"key"`
	// Value is passed from the task to its peers.
	Value string `json:"value,omitempty"`
	// Timeout starts when the round receives the arrival. 0 means no limit.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// BarrierWithdrawal is a task that stopped waiting because its process exited.
type BarrierWithdrawal struct {
	Task string `json:"task"`
	Key  string `json:"key"`
}

// BarrierState is a round's state.
type BarrierState string

// The values of [BarrierState].
const (
	BarrierWaiting  BarrierState = "waiting"
	BarrierReleased BarrierState = "released"
	BarrierBroken   BarrierState = "broken"
)

// BarrierWhy is the reason why a round broke.
type BarrierWhy string

// The values of [BarrierWhy].
const (
	BarrierTimeout   BarrierWhy = "timeout"           // an arrival timed out, which breaks the round for all
	BarrierEnded     BarrierWhy = "participant-ended" // a missing participant has ended and will not return
	BarrierRunEnded  BarrierWhy = "run-ended"         // the run or its generation is over
	BarrierCancelled BarrierWhy = "cancelled"         // the round itself was cancelled
)

// BarrierResult is the result of a round.
type BarrierResult struct {
	State BarrierState `json:"state"`
	Why   BarrierWhy   `json:"why,omitempty"`
	// Message explains Why. It omits the barrier's name.
	Message string           `json:"message,omitempty"`
	Missing []BarrierMissing `json:"missing,omitempty"`
	// Arrived lists the keys of the answered arrivals, by task.
	Arrived map[string][]string `json:"arrived"`
	// Values are the tasks' values, if the round was released.
	Values map[string]string `json:"values,omitempty"`
	// Refused lists arrivals that were not counted. If there are any, Participants lists the
	// round's participants.
	Refused      []BarrierRefusal `json:"refused,omitempty"`
	Participants []string         `json:"participants,omitempty"`
}

// BarrierMissing is a participant that has not arrived.
type BarrierMissing struct {
	Task string `json:"task"`
	// Since is when the round started to wait for the participant.
	Since time.Time `json:"since"`
}

// BarrierRefusalWhy is the reason why an arrival was not counted.
type BarrierRefusalWhy string

// The values of [BarrierRefusalWhy].
const (
	// BarrierOthers means that the arrival's participants differ from the round's.
	BarrierOthers BarrierRefusalWhy = "other-participants"
	// BarrierTooMany means that the task arrived too often without being released.
	BarrierTooMany BarrierRefusalWhy = "too-many"
	// BarrierTooLarge means that the arrival's value would make the round exceed
	// [MaxBarrierValues].
	BarrierTooLarge BarrierRefusalWhy = "too-large"
)

// BarrierRefusal is an arrival that was not counted.
type BarrierRefusal struct {
	Task string            `json:"task"`
	Key  string            `json:"key"`
	Why  BarrierRefusalWhy `json:"why"`
}

// BarrierStatus is the answer of [QueryBarrier], which takes a list of tasks; see [BarrierStatus.Of].
type BarrierStatus struct {
	Name         string           `json:"name"`
	Round        int              `json:"round"`
	Generation   int              `json:"generation"`
	State        BarrierState     `json:"state"`
	Opened       time.Time        `json:"opened,omitzero"`
	Participants []string         `json:"participants"`
	Waiting      []BarrierWaiter  `json:"waiting"`
	Missing      []BarrierMissing `json:"missing"`
	Refused      []BarrierRefusal `json:"refused,omitempty"`
	// Deadline is the time of the earliest timeout. It is zero if there are no timeouts.
	Deadline time.Time `json:"deadline,omitzero"`
}

// Of returns the part of the status that concerns tasks, or the whole status if tasks is empty.
// Each host requests only its own tasks' part.
func (s BarrierStatus) Of(tasks []string) BarrierStatus {
	if len(tasks) == 0 {
		return s
	}
	s.Waiting = slices.DeleteFunc(s.Waiting, func(w BarrierWaiter) bool { return !slices.Contains(tasks, w.Task) })
	s.Missing = []BarrierMissing{}
	s.Refused = slices.DeleteFunc(s.Refused, func(r BarrierRefusal) bool { return !slices.Contains(tasks, r.Task) })
	if len(s.Refused) == 0 {
		s.Participants = nil
	}
	return s
}

// BarrierWaiter is a participant that has arrived.
type BarrierWaiter struct {
	Task  string    `json:"task"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// ValuesOf returns the values in the order of participants, or nil if there are no values.
func ValuesOf(values map[string]string, participants []string) []string {
	if len(values) == 0 {
		return nil
	}
	all := make([]string, len(participants))
	for i, task := range participants {
		all[i] = values[task]
	}
	return all
}

// BarrierCheckInput is the input of [ActivityBarrierCheck].
type BarrierCheckInput struct {
	Run     RunRef   `json:"run"`
	Missing []string `json:"missing"`
}

// BarrierCheckOutput lists the missing tasks that will not return.
type BarrierCheckOutput struct {
	Ended []BarrierEndedTask `json:"ended,omitempty"`
	// RunEnded describes how the run or its generation is over. It is empty while both are live.
	RunEnded string `json:"run_ended,omitempty"`
}

// BarrierEndedTask is a task that has ended.
type BarrierEndedTask struct {
	Task string `json:"task"`
	How  string `json:"how,omitempty"`
}

// ErrBarrierUnchanged is the error type that [ActivityBarrierCheck] returns to request another
// attempt. It does so if it must stop while all missing tasks may still arrive.
const ErrBarrierUnchanged = "BarrierUnchanged"

// MaxBarrierValues limits the sum of a round's values, measured by [BarrierValueSize], because the
// round's workflow returns them.
const MaxBarrierValues = 1 << 20

// BarrierValueSize returns the size of a value, in bytes. A byte that is not plain text counts six
// times, since JSON may encode it in the form \u00e9.
func BarrierValueSize(value string) int {
	n := len(value)
	for i := range len(value) {
		if b := value[i]; b < ' ' || b > '~' || strings.IndexByte(`"\<>&`, b) >= 0 {
			n += 5
		}
	}
	return n
}

// MaxBarrierName is the maximum length of a barrier's name, in bytes.
const MaxBarrierName = 200

// CheckBarrierName returns an error if name is not a valid barrier name.
func CheckBarrierName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("barrier: the name is empty; choose a name")
	case len(name) > MaxBarrierName:
		return fmt.Errorf("barrier: the name has %d bytes; use at most %d", len(name), MaxBarrierName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("barrier: the name %q contains characters that cannot be printed; use printable characters", name)
	}
	return nil
}

// Over returns a sentence saying that the generation is over.
func (r RunRef) Over() string {
	return fmt.Sprintf("generation %d of run %s is over", r.Generation, r.WorkflowID)
}

// BarrierID returns the workflow ID of a round, in which rounds are counted from 1 because people
// read it. The ID includes the run's execution, so that a later run with the same ID never finds an
// earlier run's rounds.
func BarrierID(run RunRef, name string, round int) string {
	escaped := url.PathEscape(name)
	if len(escaped) > MaxBarrierName {
		sum := sha256.Sum256([]byte(name))
		escaped = "sha256-" + hex.EncodeToString(sum[:16])
	}
	return fmt.Sprintf("%s%d/%s/%d", BarrierIDPrefix(run.WorkflowID, run.RunID), run.Generation, escaped, round+1)
}

// BarrierIDPrefix returns the prefix that all round IDs of a run's execution share.
func BarrierIDPrefix(workflowID, runID string) string {
	return workflowID + "/barrier/" + ShortRunID(runID) + "/"
}

// ShortRunID returns the random part of a Temporal run ID. The first part is the same for all runs
// that start within a minute, and a new run with the same ID may start immediately.
func ShortRunID(runID string) string { return runID[strings.LastIndexByte(runID, '-')+1:] }

// NormalParticipants sorts tasks and removes duplicates.
func NormalParticipants(tasks []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(tasks)))
}

// ParticipantsDigest returns a digest of sorted participants.
func ParticipantsDigest(sorted []string) string {
	h := sha256.New()
	for _, t := range sorted {
		h.Write([]byte(t))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// maxNamed limits the participants named in a message.
const maxNamed = 10

// OtherParticipantsText returns the message that refuses an arrival because the waiting tasks
// specified different participants. It names only the differences, because two lists of a thousand
// participants may differ in a single one.
func OtherParticipantsText(task string, yours, theirs []string) string {
	var parts []string
	if extra := without(yours, theirs); len(extra) > 0 {
		parts = append(parts, "only in this request: "+shorten.List(extra, maxNamed))
	}
	if lacking := without(theirs, yours); len(lacking) > 0 {
		parts = append(parts, "only in the earlier ones: "+shorten.List(lacking, maxNamed))
	}
	return fmt.Sprintf("tasks already wait at this barrier with participants that differ from those of %s (%s); specify the same participants in all tasks, or use another name",
		task, strings.Join(parts, "; "))
}

// TooLargeText returns the message that refuses an arrival because its value is too large for the
// round.
func TooLargeText() string {
	return fmt.Sprintf("the values of all tasks exceed %d bytes in total; pass less data, such as a file's path", MaxBarrierValues)
}

// without returns the names that are not in out.
func without(names, out []string) []string {
	have := make(map[string]bool, len(out))
	for _, name := range out {
		have[name] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return have[name] })
}
