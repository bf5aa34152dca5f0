package page

import (
	"io"
	"time"
)

// HostsPage shows a queue's hosts, and the runs that wait for them.
type HostsPage struct {
	Frame
	Queue string
	Hosts []HostRow
	// Waiting lists the waiting runs in order. MoreWaiting counts those omitted.
	Waiting     []WaitingRow
	MoreWaiting int
	// Problem is why the hosts are unknown, or "".
	Problem string
}

// HostRow is a host.
type HostRow struct {
	Name string
	// RunsURL leads to the runs with tasks on the host.
	RunsURL string
	State   string
	Tone    Tone
	Since   time.Time
	// Reason is given for a cordon or a drain, and Deadline for a drain.
	Reason   string
	Deadline time.Time
	// Used and Slots count tasks; Slots is 0 if there is no limit. UsedGPUs and GPUs count
	// devices.
	Used, Slots    int
	UsedGPUs, GPUs int
	Model          string
	CPUs           int
	Memory         int64
	Version        string
	Labels         []string
	Checks         []HostCheck
	Holds          []Held
}

// HostCheck is one of a host's checks.
type HostCheck struct {
	Name string
	// Failed is why the check fails, or "".
	Failed string
	Tone   Tone
}

// Held is a run's capacity on a host.
type Held struct {
	Run       Link
	Tasks     int
	Exclusive bool
}

// WaitingRow is a run that waits for capacity.
type WaitingRow struct {
	Position int
	Run      Link
	Tasks    int
	Priority int
	Since    time.Time
	Why      string
	Begins   time.Time // zero if it does not wait for more hosts than it needs
}

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
