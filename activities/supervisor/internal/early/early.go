// Package early has what must happen before the rest of a program is initialized: a program that
// takes over catches signals, and a guard waits.
//
// From its start until it listens for them, Go's runtime ends a program at the first SIGTERM, also
// where that was ignored before the program was executed, and also where it is blocked: the runtime
// unblocks it. So this package listens when it is initialized, and imports next to nothing to be
// among the first that are.
package early

import (
	"os"
	"os/signal"
	"syscall"
)

// Handover is the variable that a program finds which is executed to take over.
const Handover = "CLUSTERRUN_HANDOVER_FD"

// SignalEnd is the signal that asks a supervisor to end, as often as it is sent: the second SIGTERM
// means that there are no graces any more. It does no harm to a program that does not listen for it yet.
const SignalEnd = syscall.SIGUSR1

// SignalUpgrade is the signal that asks a supervisor to have another program take over. It is not
// SIGHUP, which may also come from a terminal that is closed.
const SignalUpgrade = syscall.SIGUSR2

// Asking are the signals that ask a supervisor for something.
var Asking = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, SignalEnd, SignalUpgrade}

// caught gets the signals from the initialization on; nil: this program does not take over.
var caught chan os.Signal

func init() {
	if os.Getenv(Handover) != "" {
		caught = make(chan os.Signal, waiting)
		signal.Notify(caught, Asking...)
	}
}

// waiting is how many signals wait until they are read.
const waiting = 16

// Signals returns a channel for signals. The first one has those that were caught early. They are not
// caught by another channel as well, since a signal that came while there are two would come twice.
func Signals() chan os.Signal {
	c := caught
	caught = nil
	if c == nil {
		c = make(chan os.Signal, waiting)
	}
	return c
}
