package lease

// Answer is another host's answer to a request for an extension.
type Answer string

// The values of [Answer].
const (
	// Renewed means that the server has recorded the forwarded heartbeat.
	Renewed Answer = "renewed"
	// Cancelled is like Renewed, but the server also requests that the process exit.
	Cancelled Answer = "cancelled"
	// Gone means that the server no longer recognizes the attempt.
	Gone Answer = "gone"
	// Silent means that the witness also cannot reach the server.
	Silent Answer = "silent"
	// Denied means that the witness has promised the run not to extend this lease.
	Denied Answer = "denied"
)

// Combine returns the combined meaning of the witnesses' answers. One answer from the server is
// enough, whereas all witnesses must answer Silent. The result is empty if the lease is not
// extended.
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

// Holder is a process's lease on its host. Times are nanoseconds on the host's clock, which
// continues while the machine is suspended.
type Holder struct {
	bounds   Bounds
	answered int64
	until    int64
}

// NewHolder returns a lease that the server granted in response to a request sent at the given
// time.
func NewHolder(b Bounds, sent int64) *Holder {
	h := &Holder{bounds: b}
	h.Answered(sent)
	return h
}

// Answered extends the lease after the server has answered a request that was sent at the given
// time, either by this host or by one that forwarded it.
func (h *Holder) Answered(sent int64) {
	h.answered = max(h.answered, sent)
	h.until = max(h.until, sent+h.bounds.Short.Nanoseconds())
}

// Agreed extends the lease because all witnesses, asked at the given time, have reported that the
// server does not answer them.
func (h *Holder) Agreed(sent int64) {
	h.until = max(h.until, min(sent+h.bounds.Short.Nanoseconds(), h.answered+h.bounds.Long.Nanoseconds()))
}

// Until returns when the lease expires and the process is killed.
func (h *Holder) Until() int64 { return h.until }
