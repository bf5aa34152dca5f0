package spec

import (
	"strconv"
	"strings"
)

// NoSignal is the name for unnamed signals, and for processes that exited without a signal. The
// string is torch's.
const NoSignal = "<N/A>"

// linuxSignals maps numbers to signals on most Linux architectures (not mips, sparc, alpha and
// parisc). The C library uses signals 32 and 33 itself.
var linuxSignals = [...]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
	9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
	16: "SIGSTKFLT", 17: "SIGCHLD", 18: "SIGCONT", 19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN", 22: "SIGTTOU",
	23: "SIGURG", 24: "SIGXCPU", 25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH", 29: "SIGIO",
	30: "SIGPWR", 31: "SIGSYS", 34: "SIGRTMIN", 64: "SIGRTMAX",
}

// signalAliases are alternative signal names.
var signalAliases = [...]struct {
	name   string
	number int
}{{"SIGIOT", 6}, {"SIGCLD", 17}, {"SIGPOLL", 29}}

// signalPattern matches the names accepted by [SignalNumber].
var signalPattern = "^(SIG)?(" + strings.ReplaceAll(strings.Join(signalNames(), "|"), "SIG", "") + ")$"

// SignalNumber returns the number of the named Linux signal, with or without SIG. Names are in
// upper case.
func SignalNumber(name string) (int, error) {
	if n := signalNumber(name); n > 0 {
		return n, nil
	}
	e := valueError{Quote(name) + " is not a signal", "use its name, such as SIGTERM"}
	if meant := signalMeant(name); meant != "" {
		e.remedy = "did you mean " + meant + "?"
	}
	return 0, e
}

// SignalName returns the name of a Linux signal, such as "SIGTERM", or [NoSignal].
func SignalName(number int) string {
	if number < 0 || number >= len(linuxSignals) || linuxSignals[number] == "" {
		return NoSignal
	}
	return linuxSignals[number]
}

func signalNumber(name string) int {
	full := "SIG" + strings.TrimPrefix(name, "SIG")
	for n, known := range linuxSignals {
		if known == full {
			return n
		}
	}
	for _, a := range signalAliases {
		if a.name == full {
			return a.number
		}
	}
	return 0
}

// signalMeant guesses the signal meant by an invalid name.
func signalMeant(name string) string {
	if n, err := strconv.Atoi(name); err == nil && SignalName(n) != NoSignal {
		return SignalName(n)
	}
	// Ignore SIG, which would make all names look alike.
	short := signalNames()
	for i := range short {
		short[i] = strings.TrimPrefix(short[i], "SIG")
	}
	if near := Nearest(strings.TrimPrefix(strings.ToUpper(name), "SIG"), short); near != "" {
		return "SIG" + near
	}
	return ""
}

func signalNames() []string {
	var list []string
	for _, name := range linuxSignals {
		if name != "" {
			list = append(list, name)
		}
	}
	for _, a := range signalAliases {
		list = append(list, a.name)
	}
	return list
}

// canonicalSignal converts a signal to the form of [SignalName], and returns other strings
// unchanged.
func canonicalSignal(name string) string {
	if n := signalNumber(name); n > 0 {
		return SignalName(n)
	}
	return name
}
