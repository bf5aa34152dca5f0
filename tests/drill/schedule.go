package drill

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The values of [Kind].
const (
	KillSide         Kind = "kill side"
	FreezeSide       Kind = "freeze side"
	KillSupervisor   Kind = "kill supervisor"
	FreezeSupervisor Kind = "freeze supervisor"
	KillServer       Kind = "kill server"
	KillServerTwice  Kind = "kill server twice"
	FreezeServer     Kind = "freeze server"
	KillLauncher     Kind = "kill launcher"
	FreezeLauncher   Kind = "freeze launcher"
	KillMember       Kind = "kill member"
	Partition        Kind = "partition"
	Unplug           Kind = "unplug"     // the interface of a host is taken down
	FillState        Kind = "fill state" // the disk under a host's state directory
	FillLogs         Kind = "fill logs"
	Preempt          Kind = "preempt"    // a run that comes first needs the GPUs of a host
	FailCheck        Kind = "fail check" // a host fails its check from before the round
	LoseHost         Kind = "lose host"  // kill supervisor, until its runs have given the host up
)

// Fault is one fault of a schedule.
type Fault struct {
	Kind Kind
	Host int // if the fault is of a host
	Cut  Cut // of a partition from the server
	// Peers reports whether a partition also cuts the way from the other hosts to this host.
	Peers bool
	At    time.Duration // from the beginning of the round
	For   time.Duration // until it is healed
}

func (f Fault) String() string {
	where := ""
	switch f.Kind {
	case KillServer, KillServerTwice, FreezeServer, KillLauncher, FreezeLauncher, KillMember:
	default:
		where = fmt.Sprintf(" of %s", HostName(f.Host))
	}
	if f.Kind == Partition {
		where += fmt.Sprintf(" (%s)", f.Cut)
		if f.Peers {
			where += " and its peers"
		}
	}
	return fmt.Sprintf("%5.2fs %s%s for %s", f.At.Seconds(), f.Kind, where, f.For.Round(10*time.Millisecond))
}

// MayLose returns the hosts whose processes may be lost because of f: their supervisor may die,
// or they may be without contact for StopAfter. A dead side is replaced long before that.
func (f Fault) MayLose() []int {
	switch f.Kind {
	case KillSupervisor, LoseHost, FreezeSupervisor, FreezeSide, Partition, Unplug, FillState:
		return []int{f.Host}
	case KillServer, KillServerTwice, FreezeServer:
		all := make([]int, Hosts)
		for i := range all {
			all[i] = i
		}
		return all
	}
	return nil
}

// Hosts is the number of host workers.
const Hosts = 3

// HostName is the name of a host worker.
func HostName(i int) string { return fmt.Sprintf("host-%c", 'a'+i) }

const (
	// faultsPerRound is the number of faults in one round of runs.
	faultsPerRound = 5
	// beginWithin is the time within which the faults of a round begin.
	beginWithin = 6 * time.Second
)

// Limits are the limits of the machine, and of the length of a fault.
type Limits struct {
	Namespaces bool // hosts are in network namespaces
	Disks      bool // hosts have disks of their own
	// StopAfter is the StopAfter of the runs. Some faults of a host last longer.
	StopAfter time.Duration
	// Outage is the longest time for which the server may be away, if that may be long.
	Outage time.Duration
}

// NewSchedule returns the rounds of a drill with that many faults. The same arguments give the
// same schedule.
func NewSchedule(seed uint64, faults int, limits Limits) [][]Fault {
	random := rand.New(rand.NewPCG(seed, 0))
	kinds := []Kind{
		KillSide, KillSide, FreezeSide, KillSupervisor, FreezeSupervisor, KillServer, KillServerTwice, FreezeServer,
		KillLauncher, FreezeLauncher, KillMember, Partition, Partition, Partition,
		Preempt, Preempt, FailCheck, LoseHost,
	}
	if limits.Namespaces {
		kinds = append(kinds, Unplug)
	}
	if limits.Disks {
		kinds = append(kinds, FillState, FillLogs)
	}
	cuts := []Cut{CutRefuse, CutDrop, CutDropOut, CutDropIn}
	var rounds [][]Fault
	for faults > 0 {
		var round []Fault
		var alone [][]Fault // lost hosts: other faults would hide where their tasks must begin
		for range min(faults, faultsPerRound) {
			f := Fault{
				Kind: kinds[random.IntN(len(kinds))],
				Host: random.IntN(Hosts),
				Cut:  cuts[random.IntN(len(cuts))], Peers: random.IntN(2) == 0,
				At: time.Duration(random.Int64N(int64(beginWithin))),
			}
			f.For = f.length(random, limits)
			faults--
			switch f.Kind {
			case LoseHost:
				alone = append(alone, []Fault{f})
				continue
			case FailCheck:
				f.At = 0
			}
			round = append(round, f)
		}
		slices.SortStableFunc(round, func(a, b Fault) int { return int(a.At - b.At) })
		if len(round) > 0 {
			rounds = append(rounds, round)
		}
		rounds = append(rounds, alone...)
	}
	return rounds
}

// length draws how long a fault lasts: mostly moments, sometimes longer than a host
// may be cut off.
func (f Fault) length(random *rand.Rand, limits Limits) time.Duration {
	short := 100*time.Millisecond + time.Duration(random.Int64N(int64(2*time.Second)))
	long := limits.StopAfter + time.Duration(random.Int64N(int64(limits.StopAfter)))
	switch f.Kind {
	case LoseHost:
		return limits.StopAfter + long
	case FailCheck:
		return short + beginWithin/2
	case KillServer, FreezeServer:
		if limits.Outage > 0 && random.IntN(2) == 0 {
			return time.Duration(random.Int64N(int64(limits.Outage)))
		}
	case FreezeSide, KillSupervisor, Partition, Unplug:
		// A supervisor must not be frozen that long: while it is frozen, nothing stops its
		// processes if the host is cut off.
		if random.IntN(4) == 0 {
			return long
		}
	}
	return short
}
