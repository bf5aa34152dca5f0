package page

import (
	"io"
	"time"
)

// HostsPage shows the hosts of a queue, and the runs that wait for them.
type HostsPage struct {
	Frame
	Queue string
	Hosts []HostRow
	// Waiting are the runs that wait, in their order. MoreWaiting counts those that are left
	// out.
	Waiting     []WaitingRow
	MoreWaiting int
	// Problem is why the hosts are not known, or "".
	Problem string
}

// HostRow is a host.
type HostRow struct {
	Name string
	// RunsURL leads to the runs that have tasks on it.
	RunsURL string
	State   string
	Tone    Tone
	Since   time.Time
	// Reason is given with a cordon or a drain, and Deadline with a drain.
	Reason   string
	Deadline time.Time
	// Used and Slots are tasks; Slots is 0 if there is no bound. UsedGPUs and GPUs are devices.
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

// HostCheck is a check of a host.
type HostCheck struct {
	Name string
	// Failed is why it fails, or "".
	Failed string
	Tone   Tone
}

// Held is the room of a run on a host.
type Held struct {
	Run       Link
	Tasks     int
	Exclusive bool
}

// WaitingRow is a run that waits for room.
type WaitingRow struct {
	Position int
	Run      Link
	Tasks    int
	Priority int
	Since    time.Time
	Why      string
	Begins   time.Time // zero if it does not wait for more hosts than it needs
}

// RenderHosts writes the page of the hosts.
func RenderHosts(w io.Writer, p *HostsPage) error { return render(w, "hosts", p) }

// MessagePage says why there is no page, or what an action did.
type MessagePage struct {
	Frame
	Tone Tone
	Text string
	// Items are details.
	Items []string
	// Back leads to the page from which the user came. Its URL may be "".
	Back Link
}

// RenderMessage writes a message.
func RenderMessage(w io.Writer, p *MessagePage) error { return render(w, "message", p) }
