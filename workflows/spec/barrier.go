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

// RunRef names a run, and its generation, for the other workflows. Each generation has its own
// barriers. A queue of closures belongs to all generations and leaves it out.
type RunRef struct {
	WorkflowID string `json:"workflow_id"`
	// RunID is the execution. It distinguishes runs that had the same workflow ID one after
	// another.
	RunID      string `json:"run_id"`
	Generation int    `json:"generation"`
}

// BarrierInput is the input of a round. The host of the first arrival opens the round with the
// participants that it knows.
type BarrierInput struct {
	Run   RunRef `json:"run"`
	Name  string `json:"name"`
	Round int    `json:"round"` // from 0
	// Participants are the tasks that must arrive, sorted.
	Participants []string `json:"participants"`
}

// BarrierMessage is a signal from a host to a round: some of its tasks have arrived, or have
// gone away before they were released.
type BarrierMessage struct {
	Host string `json:"host"`
	// Queue is the queue of the host worker, for [ActivityBarrierCheck].
	Queue string `json:"queue"`
	// Digest is the [ParticipantsDigest] of the tasks that the host's tasks wait for. The names
	// themselves are in the [BarrierInput].
	Digest    string              `json:"digest"`
	Arrived   []BarrierArrival    `json:"arrived,omitempty"`
	Withdrawn []BarrierWithdrawal `json:"withdrawn,omitempty"`
}

// BarrierArrival is one task that arrived.
type BarrierArrival struct {
	Task string `json:"task"`
	// Key names the arrival. The same key again is the same arrival again.
	Key string `json:"key"`
	// Value is the task's value for the others.
	Value string `json:"value,omitempty"`
	// Timeout counts from the time at which the round receives the arrival. 0 means no limit.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// BarrierWithdrawal is a task that no longer waits because its process ended.
type BarrierWithdrawal struct {
	Task string `json:"task"`
	Key  string `json:"key"`
}

// BarrierState is the state of a round.
type BarrierState string

// The values of [BarrierState].
const (
	BarrierWaiting  BarrierState = "waiting"
	BarrierReleased BarrierState = "released"
	BarrierBroken   BarrierState = "broken"
)

// BarrierWhy is why a round broke.
type BarrierWhy string

// The values of [BarrierWhy].
const (
	BarrierTimeout   BarrierWhy = "timeout"           // of one arrival; it breaks the round for all
	BarrierEnded     BarrierWhy = "participant-ended" // and does not come back
	BarrierRunEnded  BarrierWhy = "run-ended"         // or its generation has
	BarrierCancelled BarrierWhy = "cancelled"         // the round itself was cancelled
)

// BarrierResult is the result of a round.
type BarrierResult struct {
	State BarrierState `json:"state"`
	Why   BarrierWhy   `json:"why,omitempty"`
	// Message explains Why. It does not name the barrier.
	Message string           `json:"message,omitempty"`
	Missing []BarrierMissing `json:"missing,omitempty"`
	// Arrived has the keys of the arrivals that this result answers, by task.
	Arrived map[string][]string `json:"arrived"`
	// Values are the values of the tasks of a released round.
	Values map[string]string `json:"values,omitempty"`
	// Refused are arrivals that did not count. Participants, set with them, are the
	// participants of the round.
	Refused      []BarrierRefusal `json:"refused,omitempty"`
	Participants []string         `json:"participants,omitempty"`
}

// BarrierMissing is a participant that has not arrived.
type BarrierMissing struct {
	Task string `json:"task"`
	// Since is the time at which the round began to wait for it.
	Since time.Time `json:"since"`
}

// BarrierRefusalWhy is the reason why an arrival did not count.
type BarrierRefusalWhy string

// The values of [BarrierRefusalWhy].
const (
	// BarrierOthers means that the arrival named participants that differ from the round's.
	BarrierOthers BarrierRefusalWhy = "other-participants"
	// BarrierTooMany means that the task has arrived too often without being released.
	BarrierTooMany BarrierRefusalWhy = "too-many"
	// BarrierTooLarge means that its value would exceed [MaxBarrierValues] for the round.
	BarrierTooLarge BarrierRefusalWhy = "too-large"
)

// BarrierRefusal is an arrival that did not count.
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
	// Deadline is the time at which the first of the timeouts passes. It is zero if there is no
	// timeout.
	Deadline time.Time `json:"deadline,omitzero"`
}

// Of returns the part of the status that concerns some of the tasks. Without any it is all of it.
// Each of many hosts asks only for its own.
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

// ValuesOf returns the values in the order of these participants. It returns nil if no participant
// has one.
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

// BarrierCheckOutput lists the missing tasks that have ended for good.
type BarrierCheckOutput struct {
	Ended []BarrierEndedTask `json:"ended,omitempty"`
	// RunEnded says how the run or its generation ended. It is empty while they live.
	RunEnded string `json:"run_ended,omitempty"`
}

// BarrierEndedTask is a task that has ended.
type BarrierEndedTask struct {
	Task string `json:"task"`
	How  string `json:"how,omitempty"`
}

// ErrBarrierUnchanged is the type of the error with which [ActivityBarrierCheck] requests
// another attempt if it must stop while all missing tasks may still come.
const ErrBarrierUnchanged = "BarrierUnchanged"

// MaxBarrierValues bounds the values of a round together, by [BarrierValueSize]: they are in
// the result of its workflow.
const MaxBarrierValues = 1 << 20

// BarrierValueSize returns the size of a value, in bytes. Every byte that is not plain text
// counts six times, since JSON may write it as \u00e9.
func BarrierValueSize(value string) int {
	n := len(value)
	for i := range len(value) {
		if b := value[i]; b < ' ' || b > '~' || strings.IndexByte(`"\<>&`, b) >= 0 {
			n += 5
		}
	}
	return n
}

// MaxBarrierName is the longest name of a barrier, in bytes.
const MaxBarrierName = 200

// CheckBarrierName returns an error if the name of a barrier is invalid.
func CheckBarrierName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("barrier: the name is empty; give a name")
	case len(name) > MaxBarrierName:
		return fmt.Errorf("barrier: the name has %d bytes; give at most %d", len(name), MaxBarrierName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("barrier: the name %q has characters that cannot be shown; give printable text", name)
	}
	return nil
}

// Over says that the generation is.
func (r RunRef) Over() string {
	return fmt.Sprintf("generation %d of run %s is over", r.Generation, r.WorkflowID)
}

// BarrierID returns the workflow ID of a round, which people count from 1. The execution
// of the run is in it so that a later run of the same ID never meets rounds that an
// earlier one left.
func BarrierID(run RunRef, name string, round int) string {
	escaped := url.PathEscape(name)
	if len(escaped) > MaxBarrierName {
		sum := sha256.Sum256([]byte(name))
		escaped = "sha256-" + hex.EncodeToString(sum[:16])
	}
	return fmt.Sprintf("%s%d/%s/%d", BarrierIDPrefix(run.WorkflowID, run.RunID), run.Generation, escaped, round+1)
}

// BarrierIDPrefix returns the common start of the IDs of all rounds of one execution of a run.
func BarrierIDPrefix(workflowID, runID string) string {
	return workflowID + "/barrier/" + ShortRunID(runID) + "/"
}

// ShortRunID returns the random part of a Temporal run ID: the first part is the same for all
// runs that begin within a minute, and a run may begin again at once.
func ShortRunID(runID string) string { return runID[strings.LastIndexByte(runID, '-')+1:] }

// NormalParticipants sorts them and leaves out repetitions.
func NormalParticipants(tasks []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(tasks)))
}

// ParticipantsDigest returns a digest of a sorted set of participants.
func ParticipantsDigest(sorted []string) string {
	h := sha256.New()
	for _, t := range sorted {
		h.Write([]byte(t))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// maxNamed bounds the participants that a text names.
const maxNamed = 10

// OtherParticipantsText refuses an arrival whose list of participants differs from the list of the
// waiting tasks. It names the difference: of a thousand they may have one.
func OtherParticipantsText(task string, yours, theirs []string) string {
	var parts []string
	if extra := without(yours, theirs); len(extra) > 0 {
		parts = append(parts, "only here: "+shorten.List(extra, maxNamed))
	}
	if lacking := without(theirs, yours); len(lacking) > 0 {
		parts = append(parts, "only there: "+shorten.List(lacking, maxNamed))
	}
	return fmt.Sprintf("tasks already wait there for other participants than %s does (%s); give all tasks the same participants, or use another name",
		task, strings.Join(parts, "; "))
}

// TooLargeText refuses an arrival whose value is too large for the round.
func TooLargeText() string {
	return fmt.Sprintf("the values of all tasks exceed %d bytes in all; pass less, such as the path of a file", MaxBarrierValues)
}

// without returns the names of the first list that are not in the second.
func without(names, out []string) []string {
	have := make(map[string]bool, len(out))
	for _, name := range out {
		have[name] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return have[name] })
}
