package supervisor

import (
	"errors"
	"strings"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
)

// The errors of requests. errors.Is works on what a [Client] returns; the text has the
// details.
var (
	// ErrFenced means that a newer commander of the task has been seen.
	ErrFenced = errors.New("fenced")
	// ErrReleased means that the run was released on this host; nothing is started for it.
	ErrReleased = errors.New("released")
	// ErrClosing means that the supervisor is about to end; it starts nothing.
	ErrClosing = errors.New("closing")
	// ErrCutOff means that the contact to the server that the process needs is over.
	ErrCutOff = errors.New("cut off")
	// ErrAlive means that an earlier process of the task still lives.
	ErrAlive = errors.New("alive")
	// ErrRemains means that SIGKILL has not ended an earlier process of the task.
	ErrRemains = errors.New("remains")
	// ErrNotGranted means that the last process of the task was not granted a successor.
	ErrNotGranted = errors.New("not granted")
	// ErrUnknownProcess means that no process of that number was ever journalled here.
	ErrUnknownProcess = errors.New("unknown process")
	// ErrPortTaken means that a port wanted by number is in use, or that none are left.
	ErrPortTaken = fault.ErrPortTaken
	// ErrJournal means that the journal could not be written, so nothing was done.
	ErrJournal = errors.New("journal")
	// ErrDamaged means that the journal of the run was found damaged. The part before it is known;
	// the rest of the run counts as lost with the host.
	ErrDamaged = errors.New("journal damaged")
	// ErrLimit means that this host could not do it even if it did nothing else, because of a
	// limit that its owner has set.
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

// net/rpc carries an error as its text only, so the sentinel travels in front.
const kindSeparator = "\x00"

func toWire(err error) error {
	if err == nil {
		return nil
	}
	for _, kind := range sentinels {
		if errors.Is(err, kind) {
			return errors.New(kind.Error() + kindSeparator + err.Error())
		}
	}
	return err
}

func fromWire(text string) error {
	kindText, rest, found := strings.Cut(text, kindSeparator)
	if found {
		for _, kind := range sentinels {
			if kind.Error() == kindText {
				return &fault.Refusal{Kind: kind, Text: rest}
			}
		}
	}
	return errors.New(text)
}
