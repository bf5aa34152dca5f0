package lease

// Answer is the answer of another host to a request for an extension.
type Answer string

// The values of [Answer].
const (
	// Renewed means that the server has recorded the heartbeat that the other host passed on.
	Renewed Answer = "renewed"
	// Cancelled means the same, and that the server asks for the end of the process.
	Cancelled Answer = "cancelled"
	// Gone means that the server no longer knows the attempt.
	Gone Answer = "gone"
	// Silent means that the server does not answer the other host either.
	Silent Answer = "silent"
	// Denied means that the other host has promised the run to extend this lease no more.
	Denied Answer = "denied"
)

// Combine returns what the answers of the others mean together. An answer of the server counts
// from any of them; Silent counts only from all. It is empty if the lease is not extended.
func Combine(answers []Answer, others int) Answer {
	silent := 0
	for _, a := range answers {
		switch a {
		case Renewed, Cancelled, Gone:
			return a
		case Silent:
			silent++
		}
	}
	if others > 0 && silent == others {
		return Silent
	}
	return ""
}

// Holder is the lease of a process on its host. Times are nanoseconds of the host's clock, which
// continues while the machine is suspended.
type Holder struct {
	bounds   Bounds
	answered int64
	until    int64
}

// NewHolder returns a lease that the server has given in answer to a request sent at that time.
func NewHolder(b Bounds, sent int64) *Holder {
	h := &Holder{bounds: b}
	h.Answered(sent)
	return h
}

// Answered extends the lease: the server has answered a request that was sent at that time, from
// this host, or from another host that passed it on.
func (h *Holder) Answered(sent int64) {
	h.answered = max(h.answered, sent)
	h.until = max(h.until, sent+h.bounds.Short.Nanoseconds())
}

// Agreed extends the lease: all the others have said, each after that time, that the server does
// not answer them.
func (h *Holder) Agreed(sent int64) {
	h.until = max(h.until, min(sent+h.bounds.Short.Nanoseconds(), h.answered+h.bounds.Long.Nanoseconds()))
}

// Until returns the end of the lease, at which the process is killed.
func (h *Holder) Until() int64 { return h.until }
