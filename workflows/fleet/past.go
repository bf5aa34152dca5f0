package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Ended reports how a run finished, or was restarted, on its hosts. It is sent when the run leaves
// the hosts or requests new ones.
type Ended struct {
	// Failures lists the failures by host.
	Failures []HostFailure `json:"failures,omitempty"`
	// Kind is the kind of end on the remaining hosts: [EndCompleted] or [EndStopped], or empty if
	// the run continues.
	Kind string `json:"kind,omitempty"`
}

// HostFailure is a run's failure that started on a host.
type HostFailure struct {
	Host string `json:"host"`
	// Kind is host-lost, oom, a signal such as SIGSEGV, a GPU error such as Xid 79, or another
	// cause.
	Kind string `json:"kind"`
	// At is the time by the host's clock, or zero if unknown.
	At time.Time `json:"at,omitzero"`
}

// The kinds of ends that are not failures.
const (
	EndCompleted = "completed"
	EndStopped   = "stopped" // for another host's failure, or on request
)

// Day summarizes how runs finished on a host on one day.
type Day struct {
	// Date is in UTC, such as 2026-11-26.
	Date string `json:"date"`
	Ends []Ends `json:"ends"`
}

// Ends counts the runs that finished, or were restarted, in one way.
type Ends struct {
	Kind string `json:"kind"`
	Runs int    `json:"runs"`
}

// Suspicion reports that several runs have failed on a host in the same way within a day, while
// most hosts did not see such a failure.
type Suspicion struct {
	Kind string `json:"kind"`
	Runs int    `json:"runs"`
	// Since is the first such failure's time. The suspicion expires at Until unless more failures
	// follow, or a user uncordons the host.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// String describes the suspicion as part of a sentence.
func (s Suspicion) String() string {
	return fmt.Sprintf("%d runs have failed there by %s within a day, and none on most other hosts", s.Runs, s.Kind)
}

// past records how runs finished on a fleet's hosts.
type past struct {
	// Hosts is sorted by name. Recent holds the last day's failures that their hosts may have
	// caused, the oldest first.
	Hosts  []PastHost      `json:"hosts,omitempty"`
	Recent []RecentFailure `json:"recent,omitempty"`
	// suspected lists the suspected hosts by name.
	suspected []suspected
}

// PastHost holds a host's days, the oldest first.
type PastHost struct {
	Name string `json:"name"`
	Days []Day  `json:"days"`
}

// RecentFailure is a run's failure on a host.
type RecentFailure struct {
	Run  Run       `json:"run"`
	Host string    `json:"host"`
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
}

type suspected struct {
	host string
	Suspicion
}

const (
	// A host is suspected after suspectRuns failed runs within suspectWithin.
	suspectRuns, suspectWithin = 3, 24 * time.Hour
	// maxDays limits all hosts' days together, and maxDaysOfHost a single host's days, because a
	// state must fit into a payload. maxRecent limits the recent failures, and maxFailures a run's
	// failures.
	maxDays, maxDaysOfHost, maxRecent, maxFailures = 2500, 180, 500, 16
	// maxKinds limits the kinds of a day.
	maxKinds = 8
)

// isOfHost reports whether a host may be to blame for this kind of failure.
func isOfHost(kind string) bool {
	return kind == string(spec.CauseHostLost) || kind == string(spec.CauseOOM) || strings.HasPrefix(kind, "SIG") || strings.HasPrefix(kind, "Xid ")
}

// expired reports whether a failure is too old to count as recent.
func (p *past) expired(now time.Time) bool {
	return len(p.Recent) > 0 && now.Sub(p.Recent[0].At) >= suspectWithin
}

// noteEnds records how a run finished on its hosts. hosts lists all of them.
func (p *past) noteEnds(run Run, e Ended, hosts []string, now time.Time) {
	failures := e.Failures[:min(len(e.Failures), maxFailures)]
	for _, f := range failures {
		known := slices.IndexFunc(p.Recent, func(r RecentFailure) bool { return r.Run == run && r.Host == f.Host && r.Kind == f.Kind })
		if known >= 0 || !f.At.IsZero() && now.Sub(f.At) >= suspectWithin {
			continue // an earlier message reported it
		}
		p.count(f.Host, f.Kind, now)
		if isOfHost(f.Kind) {
			p.Recent = append(p.Recent, RecentFailure{run, f.Host, f.Kind, now})
			p.Recent = p.Recent[max(0, len(p.Recent)-maxRecent):]
		}
	}
	if e.Kind == "" {
		return
	}
	for _, host := range hosts {
		if !slices.ContainsFunc(failures, func(f HostFailure) bool { return f.Host == host }) {
			p.count(host, e.Kind, now)
		}
	}
}

func (p *past) index(host string) (int, bool) {
	return slices.BinarySearchFunc(p.Hosts, host, func(h PastHost, name string) int { return cmp.Compare(h.Name, name) })
}

// count records how a run finished on a host.
func (p *past) count(host, kind string, now time.Time) {
	at, known := p.index(host)
	if !known {
		p.Hosts = slices.Insert(p.Hosts, at, PastHost{Name: host})
	}
	h := &p.Hosts[at]
	date := now.UTC().Format(time.DateOnly)
	if n := len(h.Days); n == 0 || h.Days[n-1].Date < date {
		h.Days = append(h.Days, Day{Date: date})
		h.Days = h.Days[max(0, len(h.Days)-maxDaysOfHost):]
		p.dropOldDays(host)
		at, _ = p.index(host)
		h = &p.Hosts[at]
	}
	day := &h.Days[len(h.Days)-1]
	i := slices.IndexFunc(day.Ends, func(e Ends) bool { return e.Kind == kind })
	switch {
	case i >= 0:
		day.Ends[i].Runs++
	case len(day.Ends) < maxKinds:
		day.Ends = append(day.Ends, Ends{kind, 1})
	default:
		day.Ends[maxKinds-1].Kind, day.Ends[maxKinds-1].Runs = "other", day.Ends[maxKinds-1].Runs+1
	}
}

// dropOldDays drops the oldest days if the fleet has too many, except for the host keep.
func (p *past) dropOldDays(keep string) {
	total := 0
	for _, h := range p.Hosts {
		total += len(h.Days)
	}
	for ; total > maxDays; total-- {
		oldest := -1
		for i, h := range p.Hosts {
			if h.Name != keep && (oldest < 0 || h.Days[0].Date < p.Hosts[oldest].Days[0].Date) {
				oldest = i
			}
		}
		if oldest < 0 {
			return
		}
		if h := &p.Hosts[oldest]; len(h.Days) > 1 {
			h.Days = h.Days[1:]
		} else {
			p.Hosts = slices.Delete(p.Hosts, oldest, oldest+1)
		}
	}
}

// suspect updates the suspected hosts, and forgets failures that are older than a day.
func (p *past) suspect(now time.Time) {
	p.Recent = slices.DeleteFunc(p.Recent, func(f RecentFailure) bool { return now.Sub(f.At) >= suspectWithin })
	p.suspected = nil
	for i, f := range p.Recent {
		first := slices.IndexFunc(p.Recent, func(o RecentFailure) bool { return o.Host == f.Host && o.Kind == f.Kind })
		if first != i || slices.ContainsFunc(p.suspected, func(s suspected) bool { return s.host == f.Host }) {
			continue
		}
		var times []time.Time
		for _, o := range p.Recent {
			if o.Host == f.Host && o.Kind == f.Kind {
				times = append(times, o.At)
			}
		}
		if len(times) < suspectRuns || !p.othersHadNone(f, now) {
			continue
		}
		p.suspected = append(p.suspected, suspected{f.Host, Suspicion{
			Kind: f.Kind, Runs: len(times), Since: times[0], Until: times[len(times)-suspectRuns].Add(suspectWithin),
		}})
	}
	slices.SortFunc(p.suspected, func(a, b suspected) int { return cmp.Compare(a.host, b.host) })
}

// othersHadNone reports whether most hosts did not see f's kind of failure. It counts hosts other
// than f's where runs have finished since yesterday.
func (p *past) othersHadNone(f RecentFailure, now time.Time) bool {
	yesterday := now.Add(-suspectWithin).UTC().Format(time.DateOnly)
	others, had := 0, 0
	for _, h := range p.Hosts {
		if h.Name == f.Host || len(h.Days) == 0 || h.Days[len(h.Days)-1].Date < yesterday {
			continue
		}
		others++
		if slices.ContainsFunc(p.Recent, func(o RecentFailure) bool { return o.Host == h.Name && o.Kind == f.Kind }) {
			had++
		}
	}
	return others > 0 && 2*had < others
}

// suspicionOf returns why a host is suspected, or nil.
func (p *past) suspicionOf(host string) *Suspicion {
	at, found := slices.BinarySearchFunc(p.suspected, host, func(s suspected, name string) int { return cmp.Compare(s.host, name) })
	if !found {
		return nil
	}
	return &p.suspected[at].Suspicion
}

// pardon forgets the failures that a host may have caused.
func (p *past) pardon(host string) {
	p.Recent = slices.DeleteFunc(p.Recent, func(f RecentFailure) bool { return f.Host == host })
}

// ofHost returns a host's days, the latest first.
func (p *past) ofHost(host string) []Day {
	at, found := p.index(host)
	if !found {
		return nil
	}
	days := slices.Clone(p.Hosts[at].Days)
	slices.Reverse(days)
	return days
}
