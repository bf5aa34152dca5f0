package ports

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// Ports holds a run's ports. It is locked while ports are probed and leases are written to disk,
// which does not make other runs wait.
type Ports struct {
	mu sync.Mutex
	// leased holds the journalled replies.
	leased map[leaseKey]Lease
	held   map[int]int // socket descriptors by port
	lapse  *time.Timer
}

// leaseKey identifies a lease in a run.
type leaseKey struct{ generation, group int }

// Lease lists one lease's ports.
type Lease struct {
	Any   []int // arbitrary
	Fixed []int
}

// All returns all ports.
func (l Lease) All() []int { return slices.Concat(l.Any, l.Fixed) }

func (l Lease) equals(other Lease) bool {
	return slices.Equal(l.Any, other.Any) && slices.Equal(l.Fixed, other.Fixed)
}

// Remember records a lease that an earlier supervisor granted.
func (p *Ports) Remember(generation, group int, l Lease) {
	if p.leased == nil {
		p.leased = make(map[leaseKey]Lease)
	}
	p.leased[leaseKey{generation, group}] = l
}

// Leased returns a lease.
func (p *Ports) Leased(generation, group int) Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leased[leaseKey{generation, group}]
}

// portPrefix is the prefix of abstract sockets that show a lease to the supervisors of all users on
// a machine. The kernel frees a socket when its holder exits.
const portPrefix = "clusterrun-port-"

// Request leases ports for a run. It is idempotent: a repeated request for the same run, generation
// and group returns the same ports. If a new supervisor does not hold these ports, it leases them
// again.
type Request struct {
	Run        runkey.Run
	Generation int
	// Group distinguishes the leases of one generation.
	Group int
	// Count is the number of arbitrary ports to lease.
	Count int
	// Ports lists ports that are requested by number. The request fails if one of them is in use,
	// even by another task of the run.
	Ports []int
	// Tasks is the number of simultaneous tasks. Files is the number of files, in addition to the
	// ports, that the supervisor opens for them.
	Tasks, Files int
	// Avoid lists the ports that any of the run's leases requests by number.
	Avoid []int
}

// Run gives [Ports] access to its run.
type Run struct {
	// Check returns whether the generation has ever started a process and whether any process of
	// the run is alive, or an error if nothing can be leased.
	Check func(generation int) (began, lives bool, err error)
	// Busy reports whether a process of an earlier generation has not ended.
	Busy func(generation int) bool
	// Journal records a lease.
	Journal func(generation, group int, l Lease) error
	// Lapse is how long ports are held while no process lives.
	Lapse time.Duration
	Log   *slog.Logger
}

// Check returns an error if r can never be granted on this host.
func (r Request) Check() error {
	if r.Count < 0 {
		return fault.Refuse(fault.ErrInvalid, fmt.Sprintf("%d ports cannot be reserved", r.Count))
	}
	return r.needs().Check()
}

// needs returns what the run's tasks need. Each leased port is an open file.
func (r Request) needs() fault.Needs {
	return fault.Needs{Files: r.Count + len(r.Ports) + r.Files, Processes: r.Tasks}
}

// Lease leases ports. The request must have passed Check.
func (p *Ports) Lease(r Request, of Run) ([]int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	began, lives, err := of.Check(r.Generation)
	if err != nil {
		return nil, err
	}
	key := leaseKey{r.Generation, r.Group}
	before, again := p.leased[key]
	if again && len(before.Any) != r.Count && began {
		return nil, fault.Refuse(fault.ErrInvalid, fmt.Sprintf("start %d of run %s has %d ports and uses them; it cannot have %d", r.Generation, r.Run.WorkflowID, len(before.Any), r.Count))
	}
	if !again {
		if err := r.needs().Room(); err != nil {
			return nil, err
		}
	}
	had := maps.Clone(p.held)
	got, err := p.take(r, before.Any, began)
	if err == nil && (!again || !got.equals(before)) {
		if err = of.Journal(r.Generation, r.Group, got); err == nil {
			p.Remember(r.Generation, r.Group, got)
		}
	}
	if err != nil {
		for port := range p.held {
			if _, before := had[port]; !before {
				p.letGo([]int{port})
			}
		}
		return nil, err
	}
	p.dropOld(r.Generation, of.Busy)
	p.stopLapse()
	if !lives {
		p.lapseLater(r.Run, of)
	}
	return got.Any, nil
}

// take holds a lease's ports. before lists the lease's earlier arbitrary ports, which tasks may
// already be using if the generation began. p.mu must be held.
func (p *Ports) take(r Request, before []int, began bool) (got Lease, err error) {
	got.Fixed = r.Ports
	for i, port := range r.Ports {
		if slices.Contains(r.Ports[:i], port) || p.sharedWith(leaseKey{r.Generation, r.Group}, port) {
			return got, fault.Refuse(fault.ErrPortTaken, fmt.Sprintf("port %d is taken by another of the run's tasks", port))
		}
		if err := p.hold(port, isReusable); err != nil {
			return got, err
		}
	}
	probe := isReusable
	if began { // a task may already be listening
		probe = nil
	}
	for _, port := range before {
		if len(got.Any) == r.Count {
			break
		}
		if err := p.hold(port, probe); err == nil {
			got.Any = append(got.Any, port)
		} else if began {
			return got, err
		} // otherwise, choose another port
	}
	if missing := r.Count - len(got.Any); missing > 0 {
		more, err := p.holdAny(missing, r.Avoid)
		if err != nil {
			return got, err
		}
		got.Any = append(got.Any, more...)
	}
	return got, nil
}

// sharedWith reports whether another lease in the same generation includes port. p.mu must be held.
func (p *Ports) sharedWith(key leaseKey, port int) bool {
	for other, l := range p.leased {
		if other.generation == key.generation && other.group != key.group && slices.Contains(l.All(), port) {
			return true
		}
	}
	return false
}

// stopLapse cancels lapseLater. p.mu must be held.
func (p *Ports) stopLapse() {
	if p.lapse != nil {
		p.lapse.Stop()
		p.lapse = nil
	}
}

// lapseLater makes the ports lapse unless a process starts. p.mu must be held.
func (p *Ports) lapseLater(run runkey.Run, of Run) {
	var timer *time.Timer
	timer = time.AfterFunc(of.Lapse, func() { p.lapseNow(run, &timer, of.Log) })
	p.lapse = timer
}

// KeepGenerations is how many generations a run remembers besides the first.
const KeepGenerations = 100

// dropOld frees the ports that only earlier generations use, unless one of these generations'
// processes has not ended. The new generation does not reuse them, so that a peer of the old one
// cannot reach it.
func (p *Ports) dropOld(generation int, busy func(int) bool) {
	if busy(generation) {
		return
	}
	var keep []int
	maps.DeleteFunc(p.leased, func(key leaseKey, _ Lease) bool {
		return key.generation > 0 && key.generation < generation-KeepGenerations
	})
	for key, l := range p.leased {
		if key.generation >= generation {
			keep = append(keep, l.All()...)
		}
	}
	for port := range p.held {
		if !slices.Contains(keep, port) {
			p.letGo([]int{port})
		}
	}
}

// lapseNow frees a run's ports if no process has been started since they were leased.
func (p *Ports) lapseNow(run runkey.Run, timer **time.Timer, log *slog.Logger) {
	p.mu.Lock() // held when the timer was set
	defer p.mu.Unlock()
	if p.lapse != *timer {
		return // before mu was locked, a process started or the lease was renewed
	}
	p.lapse = nil
	if len(p.held) > 0 {
		log.Info("Released reserved ports because nothing was started for them.", "run", run.WorkflowID)
	}
	p.letGo(nil)
}

// Keep keeps the ports until Free is called, because the generation is starting a process. If the
// ports have just lapsed, it leases them again.
func (p *Ports) Keep(generation int, log *slog.Logger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopLapse()
	for key, l := range p.leased {
		if key.generation != generation {
			continue
		}
		for _, port := range l.All() {
			// The port is not probed, because a task of the run may already be listening on it.
			if err := p.hold(port, nil); err != nil {
				log.Warn("A run's port is no longer reserved for it.", "error", err)
			}
		}
	}
}

// Free frees all ports.
func (p *Ports) Free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopLapse()
	p.letGo(nil)
}

// letGo frees the given ports, or all if ports is nil.
func (p *Ports) letGo(ports []int) {
	for port, fd := range p.held {
		if ports == nil || slices.Contains(ports, port) {
			_ = unix.Close(fd)
			delete(p.held, port)
		}
	}
}

// hold holds a port unless it is already held. If probe is not nil, it returns an error if no
// program can listen on the port. p.mu must be held.
func (p *Ports) hold(port int, probe func(port int) error) error {
	if port < 1 || port > 65535 {
		return fault.Refuse(fault.ErrInvalid, fmt.Sprintf("%d is not a port", port))
	}
	if _, ok := p.held[port]; ok {
		return nil
	}
	fd, err := bindPort(port)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fault.Refuse(fault.ErrPortTaken, fmt.Sprintf("port %d is taken by another run of clusterrun on this machine", port))
	case err != nil:
		return notProbed(port, err)
	case probe != nil:
		if err := probe(port); err != nil {
			_ = unix.Close(fd)
			if fault.LimitOf(err) != "" {
				return notProbed(port, err)
			}
			return fault.Refuse(fault.ErrPortTaken, fmt.Sprintf("port %d is taken: %s", port, fault.Reason(err)))
		}
	}
	if p.held == nil {
		p.held = make(map[int]int)
	}
	p.held[port] = fd
	return nil
}

// holdAny holds arbitrary ports below the range that the kernel uses for outgoing connections. p.mu
// must be held.
func (p *Ports) holdAny(count int, avoid []int) (got []int, err error) {
	for port := range anyPorts() {
		if len(got) == count {
			return got, nil
		}
		if _, ok := p.held[port]; ok || slices.Contains(avoid, port) {
			continue
		}
		switch err := p.hold(port, isFree); {
		case err == nil:
			got = append(got, port)
		case !errors.Is(err, fault.ErrPortTaken):
			return nil, err
		}
	}
	if len(got) == count {
		return got, nil
	}
	low, high := Range()
	return nil, fault.Refuse(fault.ErrPortTaken, fmt.Sprintf("only %d of %d ports are free between %d and %d", len(got), count, low, high-1))
}

func notProbed(port int, err error) error {
	return fmt.Errorf("reserving port %d: %s", port, fault.Reason(err))
}
