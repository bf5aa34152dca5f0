package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// runPorts are the ports of a run. See lockPorts.
type runPorts struct {
	mu sync.Mutex
	// leased holds the replies, as journalled.
	leased map[portLeaseKey]portLease
	held   map[int]int // by port, the descriptor of the socket that holds it
	pins   map[int]pin // the ports of held that a task wants by number
	stores map[int]store
	lapse  *time.Timer
}

// portLeaseKey names a lease of a run.
type portLeaseKey struct{ generation, group int }

// portLease is the ports of one lease.
type portLease struct {
	any   []int // without a wanted number
	fixed []int
	store string // the address of the store; empty if there is none
}

func (l portLease) all() []int { return slices.Concat(l.any, l.fixed) }

func (p *runPorts) remember(key portLeaseKey, l portLease) {
	if p.leased == nil {
		p.leased = make(map[portLeaseKey]portLease)
	}
	p.leased[key] = l
}

// portPrefix begins the names of the abstract sockets by which the supervisors of all
// users of a machine see each other's leases. The kernel frees them with their holder.
const portPrefix = "clusterrun-port-"

// lockPorts locks the ports of a run. Other runs do not wait for it: ports are probed, and
// leases written to disk, while it is held.
func (s *supervisor) lockPorts(run *run) (unlock func()) {
	run.ports.mu.Lock()
	return run.ports.mu.Unlock
}

// Lease leases ports; see [API].
func (s *supervisor) Lease(_ context.Context, r PortLeaseRequest) (PortLeaseReply, error) {
	if r.Count < 0 {
		return PortLeaseReply{}, refuse(ErrInvalid, fmt.Sprintf("%d ports cannot be leased", r.Count))
	}
	if err := checkFiles(r.Count + len(r.Ports)); err != nil {
		return PortLeaseReply{}, err
	}
	run := s.lockOrAddRun(r.Run)
	s.mu.Unlock()
	defer s.lockPorts(run)()
	s.mu.Lock()
	var err error
	switch {
	case run.damaged != "":
		err = run.damageError()
	case run.releasing:
		err = refuse(ErrReleased, fmt.Sprintf("run %s was released on this host", r.Run.WorkflowID))
	case s.isClosing():
		err = refuse(ErrClosing, "the supervisor is about to end")
	}
	lives, began := false, false
	run.each(func(p *process) {
		lives = lives || p.phase != ended
		began = began || p.Key.Generation == r.Generation
	})
	s.mu.Unlock()
	if err != nil {
		return PortLeaseReply{}, err
	}

	key := portLeaseKey{r.Generation, r.Group}
	before, again := run.ports.leased[key]
	if again && len(before.any) != r.Count && began {
		return PortLeaseReply{}, refuse(ErrInvalid, fmt.Sprintf("generation %d of run %s has %d ports and runs with them; it cannot have %d", r.Generation, r.Run.WorkflowID, len(before.any), r.Count))
	}
	got := portLease{fixed: r.Ports}
	fresh := make([]int, 0, r.Count) // freed if this fails
	fail := func(err error) (PortLeaseReply, error) {
		run.ports.letGo(fresh)
		return PortLeaseReply{}, err
	}
	for i, port := range r.Ports {
		task := ""
		if i < len(r.Tasks) {
			task = r.Tasks[i]
		}
		if j := slices.Index(r.Ports[:i], port); j >= 0 && j < len(r.Tasks) {
			return fail(errShared(port, task, r.Tasks[j]))
		}
		if err := run.ports.sharedWith(key, port, task); err != nil {
			return fail(err)
		}
		mine, err := run.ports.hold(port, true)
		if errors.Is(err, ErrPortTaken) {
			if other := pinnedBy(r.Run, r.Generation, port, task); other != "" {
				err = errShared(port, task, other)
			}
		}
		if err != nil {
			return fail(err)
		}
		if mine {
			fresh = append(fresh, port)
		}
		run.ports.pin(r.Run, r.Generation, port, task)
	}
	for _, port := range before.any {
		if len(got.any) == r.Count {
			break
		}
		mine, err := run.ports.hold(port, !began)
		if err != nil {
			if began {
				return fail(err) // the tasks know this port
			}
			continue // not in use yet: take another one
		}
		if mine {
			fresh = append(fresh, port)
		}
		got.any = append(got.any, port)
	}
	if missing := r.Count - len(got.any); missing > 0 {
		more, err := run.ports.holdAny(missing, r.Avoid)
		if err != nil {
			return fail(err)
		}
		fresh = append(fresh, more...)
		got.any = append(got.any, more...)
	}
	if got.store, err = storeAddress(r.Store, got.any); err == nil {
		err = s.serveStore(run, key, got.store)
	}
	if err != nil {
		return fail(err)
	}
	if !again || !slices.Equal(before.any, got.any) || !slices.Equal(before.fixed, got.fixed) || before.store != got.store {
		err := run.journal.append(record{Type: recLeased, Generation: r.Generation, Group: r.Group, Ports: got.any, Fixed: got.fixed, Store: got.store})
		if err != nil {
			return fail(err)
		}
		run.ports.remember(key, got)
	}
	s.dropOldPorts(run, r.Generation)
	stopTimer(run.ports.lapse)
	run.ports.lapse = nil
	if !lives {
		s.lapseLater(run)
	}
	return PortLeaseReply{Ports: got.any}, nil
}

// lapseLater lets the ports of a run lapse unless it starts a process. Its ports must be
// locked.
func (s *supervisor) lapseLater(run *run) {
	var timer *time.Timer
	timer = time.AfterFunc(s.cfg.PortsLapse, func() { s.lapsePorts(run, &timer) })
	run.ports.lapse = timer
}

// dropOldPorts frees the ports of earlier generations only, unless a process of these is
// still ending. They are not reused for the new generation: a peer of the old one must not
// reach it by mistake.
func (s *supervisor) dropOldPorts(run *run, generation int) {
	s.mu.Lock()
	busy := false
	run.each(func(p *process) { busy = busy || p.Key.Generation < generation && p.phase != ended })
	s.mu.Unlock()
	if busy {
		return
	}
	var keep []int
	maps.DeleteFunc(run.ports.leased, func(key portLeaseKey, _ portLease) bool {
		return key.generation > 0 && key.generation < generation-KeepProcesses
	})
	for key, l := range run.ports.leased {
		if key.generation >= generation {
			keep = append(keep, l.all()...)
		}
	}
	for port := range run.ports.held {
		if !slices.Contains(keep, port) {
			run.ports.letGo([]int{port})
		}
	}
}

// lapsePorts frees the ports of a run that has never started a process.
func (s *supervisor) lapsePorts(run *run, timer **time.Timer) {
	defer s.lockPorts(run)() // under which the timer was set
	if run.ports.lapse != *timer {
		return // a process was started meanwhile, or the lease was renewed
	}
	run.ports.lapse = nil
	if len(run.ports.held) > 0 {
		s.log.Info("Leased ports are released, because nothing was started for them.", zap.String("run", run.key.WorkflowID))
	}
	run.ports.letGo(nil)
}

// keepPorts keeps the ports of a run that starts a process until its release, and leases them
// again if they have just lapsed.
func (s *supervisor) keepPorts(run *run, generation int) {
	defer s.lockPorts(run)()
	stopTimer(run.ports.lapse)
	run.ports.lapse = nil
	for key, l := range run.ports.leased {
		if key.generation != generation {
			continue
		}
		for _, port := range l.all() {
			// The port is not probed: a task of the run may already listen.
			if _, err := run.ports.hold(port, false); err != nil {
				s.log.Warn("A port of a run is no longer leased to it.", zap.String("run", run.key.WorkflowID), zap.Error(err))
			}
		}
		if err := s.serveStore(run, key, l.store); err != nil {
			s.log.Warn("The store of a run is no longer served.", zap.String("run", run.key.WorkflowID), zap.Error(err))
		}
	}
}

func (s *supervisor) freePorts(run *run) {
	defer s.lockPorts(run)()
	stopTimer(run.ports.lapse)
	run.ports.lapse = nil
	run.ports.letGo(nil)
}

// letGo frees the given ports, or all if ports is nil.
func (p *runPorts) letGo(ports []int) {
	p.unpin(ports)
	p.endStores(ports)
	if ports == nil {
		for port, fd := range p.held {
			_ = unix.Close(fd)
			delete(p.held, port)
		}
		return
	}
	for _, port := range ports {
		if fd, ok := p.held[port]; ok {
			_ = unix.Close(fd)
			delete(p.held, port)
		}
	}
}

// hold leases one port. It returns false without an error if the run already has it.
func (p *runPorts) hold(port int, probe bool) (bool, error) {
	if port < 1 || port > 65535 {
		return false, refuse(ErrInvalid, fmt.Sprintf("%d is no port", port))
	}
	if _, ok := p.held[port]; ok {
		return false, nil
	}
	fd, err := bindPort(port)
	if err != nil {
		if errors.Is(err, unix.EADDRINUSE) {
			return false, refuse(ErrPortTaken, fmt.Sprintf("port %d is taken: it is leased to another run of clusterrun on this machine", port))
		}
		return false, notProbed(port, err)
	}
	if probe {
		if err := probePort(port, true); err != nil {
			_ = unix.Close(fd)
			if LimitOf(err) != "" {
				return false, notProbed(port, err)
			}
			return false, refuse(ErrPortTaken, fmt.Sprintf("port %d is taken: %s", port, reasonOf(err)))
		}
	}
	if p.held == nil {
		p.held = make(map[int]int)
	}
	p.held[port] = fd
	return true, nil
}

// holdAny leases ports without a wanted number, below the range that the kernel uses for
// outgoing connections.
func (p *runPorts) holdAny(count int, avoid []int) ([]int, error) {
	got := make([]int, 0, count) // not nil, which letGo would take for all
	for port := range anyPorts() {
		if len(got) == count {
			break
		}
		if _, ok := p.held[port]; ok || slices.Contains(avoid, port) {
			continue
		}
		fd, err := bindPort(port)
		if errors.Is(err, unix.EADDRINUSE) {
			continue
		}
		if err != nil {
			p.letGo(got)
			return nil, notProbed(port, err)
		}
		if err := probePort(port, false); err != nil {
			_ = unix.Close(fd)
			if LimitOf(err) != "" {
				p.letGo(got)
				return nil, notProbed(port, err)
			}
			continue
		}
		if p.held == nil {
			p.held = make(map[int]int)
		}
		p.held[port] = fd
		got = append(got, port)
	}
	if len(got) < count {
		p.letGo(got)
		low, high := portRange()
		return nil, refuse(ErrPortTaken, fmt.Sprintf("only %d of %d ports are free between %d and %d", len(got), count, low, high-1))
	}
	return got, nil
}

// notProbed returns the error for a port that could not be probed.
func notProbed(port int, err error) error {
	return fmt.Errorf("leasing port %d: %s", port, reasonOf(err))
}
