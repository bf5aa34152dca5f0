package activities

import (
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
)

// core is what the parts of a host share.
type core struct {
	Config
	group    *background.Group
	plans    *planStore
	services *taskservices.Services
	shipped  *shipped.Store
	now      func() time.Time
}

// The parts of a host, by what they decide.
type (
	// gate asks the policy, and writes the audit log.
	gate struct {
		*core
		ships *shipping
	}
	// shipping brings what runs ship, and knows where it is.
	shipping struct{ *core }
	// checks finds out beforehand what would keep a task from starting here.
	checks struct {
		*core
		gate  *gate
		ships *shipping
	}
	// reservations takes tasks: their slots, ports and user.
	reservations struct {
		*core
		stops    *stopper
		ships    *shipping
		claiming sync.Mutex // held while the slots of a run are claimed; see claimSlots
	}
	// stopper stops processes, each as its task says.
	stopper struct {
		*core
		gate *gate
	}
	// captures writes down the stacks of processes.
	captures struct{ *core }
	// silenced carries out on_silence.
	silenced struct {
		*core
		leases   *leases
		gate     *gate
		checks   *checks
		stops    *stopper
		captures *captures
	}
	// collectors collect the filtered lines of the runs that ask for them, from the first task
	// of a run here to its release. They end with this host worker, and the next one starts
	// them again.
	collectors struct {
		*core
		mu    sync.Mutex
		byRun map[runkey.Run]*tasklog.Collector
	}
	// reconciler watches the runs that hold something here without a lease.
	reconciler struct {
		*core
		leases       *leases
		gate         *gate
		ships        *shipping
		stops        *stopper
		reservations *reservations
		collectors   *collectors

		// strangers are the runs for which a changed server has been logged.
		strangers sync.Map // of runkey.Run
		mu        sync.Mutex
		lastHeard time.Time // when the server last answered
	}
)

// assemble returns a host of parts that share c.
func assemble(c *core) *Host {
	h := &Host{core: c, leases: newLeases(), ships: &shipping{c}, captures: &captures{c}, collectors: &collectors{core: c}}
	h.gate = &gate{core: c, ships: h.ships}
	h.stops = &stopper{core: c, gate: h.gate}
	h.checks = &checks{core: c, gate: h.gate, ships: h.ships}
	h.reservations = &reservations{core: c, stops: h.stops, ships: h.ships}
	h.silenced = &silenced{core: c, leases: h.leases, gate: h.gate, checks: h.checks, stops: h.stops, captures: h.captures}
	h.watch = &reconciler{
		core: c, leases: h.leases, gate: h.gate, ships: h.ships, stops: h.stops,
		reservations: h.reservations, collectors: h.collectors, lastHeard: time.Now(),
	}
	return h
}
