package page

import (
	"io"
	"net/url"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/fleet"
)

// HostsPage shows a queue's hosts, and the runs that wait for them.
type HostsPage struct {
	Frame
	Queue string
	Hosts []Host
	// Waiting lists the waiting runs in order. MoreWaiting counts those omitted.
	Waiting     []fleet.Waiting
	MoreWaiting int
	// Problem is why the hosts are unknown, or "".
	Problem string
}

// Host is a host.
type Host struct{ fleet.HostStatus }

// Tone returns the tone for the host's state.
func (h Host) Tone() Tone {
	switch h.State {
	case fleet.HostReady:
		return Good
	case fleet.HostSilent:
		return Bad
	}
	return Warning
}

// Failed returns why one of the host's checks fails, or "".
func (h Host) Failed(check string) string {
	if i := slices.IndexFunc(h.Failing, func(f fleet.FailedCheck) bool { return f.Check == check }); i >= 0 {
		return h.Failing[i].Reason
	}
	return ""
}

// CheckTone returns the tone for one of the host's checks.
func (h Host) CheckTone(check string) Tone {
	if h.Failed(check) != "" {
		return Bad
	}
	return Good
}

// RunsURL returns the address of the runs with tasks on the host.
func (h Host) RunsURL() string { return "/?" + url.Values{"host": {h.Name}}.Encode() }

// RenderHosts writes the hosts page.
func RenderHosts(w io.Writer, p *HostsPage) error { return render(w, "hosts", p) }

// MessagePage explains why a page is unavailable, or what an action did.
type MessagePage struct {
	Frame
	Tone Tone
	Text string
	// Items holds details.
	Items []string
	// Back leads to the previous page. Its URL may be "".
	Back Link
}

// RenderMessage writes a message.
func RenderMessage(w io.Writer, p *MessagePage) error { return render(w, "message", p) }
