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
	Unplug           Kind = "unplug"     // a host's interface is taken down
	FillState        Kind = "fill state" // the disk with a host's state directory
	FillLogs         Kind = "fill logs"
	GiveNotice       Kind = "give notice" // to a run, which is then pending again
	FailCheck        Kind = "fail check"  // a host fails its check from before the round
	LoseHost         Kind = "lose host"   // kill supervisor, until its runs give up the host
)

// Fault is a fault in a schedule.
type Fault struct {
	Kind Kind
	Host int // if the fault is of a host
	Cut  Cut // of a partition from the server
	// Peers reports whether a partition also separates this host from other hosts.
	Peers bool
	At    time.Duration // since the start of the round
	For   time.Duration // until it is healed
}

func (f Fault) String() string {
	where := ""
	switch f.Kind {
	case KillServer, KillServerTwice, FreezeServer, KillLauncher, FreezeLauncher, KillMember, GiveNotice:
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

// MayLose returns the hosts that may lose processes because of f, if their supervisor dies or they
// lose contact for StopAfter. A dead side is replaced long before that.
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
	// Each round of runs gets faultsPerRound faults.
	faultsPerRound = 5
	// beginWithin limits when a round's faults may start.
	beginWithin = 6 * time.Second
)

// Limits are the machine's limits, and the limits on a fault's length.
type Limits struct {
	Namespaces bool // hosts are in network namespaces
	Disks      bool // each host uses a separate disk
	// StopAfter is the StopAfter of the runs. Some host faults last longer.
	StopAfter time.Duration
	// Outage limits how long the server may be down, if long outages are allowed.
	Outage time.Duration
}

// NewSchedule returns a drill's rounds, with the given number of faults. It is deterministic.
func NewSchedule(seed uint64, faults int, limits Limits) [][]Fault {
	random := rand.New(rand.NewPCG(seed, 0))
	kinds := []Kind{
		KillSide, KillSide, FreezeSide, KillSupervisor, FreezeSupervisor, KillServer, KillServerTwice, FreezeServer,
		KillLauncher, FreezeLauncher, KillMember, Partition, Partition, Partition,
		GiveNotice, GiveNotice, FailCheck, LoseHost,
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
		var alone [][]Fault // lost hosts; more faults would hide where their tasks must start
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

// length draws a fault's duration, mostly moments, but sometimes longer than a host may be cut off.
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
		// A supervisor must not be frozen that long, since nothing would stop its processes if
		// the host is cut off.
		if random.IntN(4) == 0 {
			return long
		}
	}
	return short
}
