package spec

import (
	"strconv"
	"strings"
)

// NoSignal stands for the name of a signal that has none, and for the signal of a process that
// ended by itself. It is torch's text.
const NoSignal = "<N/A>"

// linuxSignals are the signals of Linux by number, as most architectures
// number them (not mips, sparc, alpha and parisc). 32 and 33 belong to the C
// library.
var linuxSignals = [...]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
	9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
	16: "SIGSTKFLT", 17: "SIGCHLD", 18: "SIGCONT", 19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN", 22: "SIGTTOU",
	23: "SIGURG", 24: "SIGXCPU", 25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH", 29: "SIGIO",
	30: "SIGPWR", 31: "SIGSYS", 34: "SIGRTMIN", 64: "SIGRTMAX",
}

// signalAliases are second names of signals.
var signalAliases = [...]struct {
	name   string
	number int
}{{"SIGIOT", 6}, {"SIGCLD", 17}, {"SIGPOLL", 29}}

// signalPattern matches the names [SignalNumber] knows.
var signalPattern = "^(SIG)?(" + strings.ReplaceAll(strings.Join(signalNames(), "|"), "SIG", "") + ")$"

// SignalNumber returns the number of the Linux signal of that name, with or without
// SIG in front. Names are written in capitals.
func SignalNumber(name string) (int, error) {
	if n := signalNumber(name); n > 0 {
		return n, nil
	}
	e := valueError{Quote(name) + " is not a signal", "write its name, such as SIGTERM"}
	if meant := signalMeant(name); meant != "" {
		e.remedy = "did you mean " + meant + "?"
	}
	return 0, e
}

// SignalName returns the name of a Linux signal by its number, such as "SIGTERM",
// or [NoSignal].
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

// signalMeant guesses the signal that an invalid name was meant to be.
func signalMeant(name string) string {
	if n, err := strconv.Atoi(name); err == nil && SignalName(n) != NoSignal {
		return SignalName(n)
	}
	// Compared without SIG, with which any two of them would look alike.
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

// canonicalSignal writes a signal the way [SignalName] does, and returns other texts unchanged.
func canonicalSignal(name string) string {
	if n := signalNumber(name); n > 0 {
		return SignalName(n)
	}
	return name
}
