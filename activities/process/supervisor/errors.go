package supervisor

import (
	"errors"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
)

// Request errors. errors.Is works on what a [Client] returns; the message contains details.
var (
	// ErrFenced means that the task has a newer commander.
	ErrFenced = errors.New("fenced")
	// ErrReleased means that the run was released on this host, so it cannot start anything.
	ErrReleased = errors.New("released")
	// ErrClosing means that the supervisor is about to exit and does not start processes.
	ErrClosing = errors.New("closing")
	// ErrCutOff means that the process's contact with the server expired.
	ErrCutOff = errors.New("cut off")
	// ErrAlive means that an earlier process of the task still lives.
	ErrAlive = errors.New("alive")
	// ErrRemains means that an earlier process of the task survives SIGKILL.
	ErrRemains = errors.New("remains")
	// ErrNotGranted means that the last process of the task was not granted a successor.
	ErrNotGranted = errors.New("not granted")
	// ErrUnknownProcess means that this host never journalled a process with that number.
	ErrUnknownProcess = errors.New("unknown process")
	// ErrPortTaken means that a requested port is in use, or that none are left.
	ErrPortTaken = fault.ErrPortTaken
	// ErrJournal means that the journal could not be written, so nothing was done.
	ErrJournal = errors.New("journal")
	// ErrDamaged means that the run's journal is damaged. What precedes the damage is known;
	// everything else counts as lost with the host.
	ErrDamaged = errors.New("journal damaged")
	// ErrLimit means that, because of a limit set by its owner, this host could not meet the
	// request even when idle.
	ErrLimit = fault.ErrLimit
	// ErrInvalid means that the request is invalid.
	ErrInvalid = fault.ErrInvalid
	// ErrLost means that the supervisor has exited. Only the client returns it.
	ErrLost = errors.New("supervisor lost")
)

var sentinels = []error{
	ErrFenced, ErrReleased, ErrClosing, ErrCutOff, ErrAlive, ErrRemains, ErrNotGranted, ErrUnknownProcess,
	ErrPortTaken, ErrJournal, ErrDamaged, ErrLimit, ErrInvalid,
}

// failure is an error in an answer.
type failure struct {
	Kind string // a sentinel's, or empty
	Text string
}

func failureOf(err error) *failure {
	f := &failure{Text: err.Error()}
	for _, kind := range sentinels {
		if errors.Is(err, kind) {
			f.Kind = kind.Error()
			break
		}
	}
	return f
}

// err returns the error, or nil if f is nil.
func (f *failure) err() error {
	if f == nil {
		return nil
	}
	for _, kind := range sentinels {
		if kind.Error() == f.Kind {
			return &fault.Refusal{Kind: kind, Text: f.Text}
		}
	}
	return errors.New(f.Text)
}
