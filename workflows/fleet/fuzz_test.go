package fleet

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterrun/clusterrun/tests/scripts"
)

// FuzzMachine feeds random events to a fleet, and checks what the runs rely on: no host is
// overcommitted, only ready hosts get tasks, each run gets all that it requested, once, and no run
// delays a run that comes before it.
func FuzzMachine(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same ones each time
	for range 60 {
		script := make([]byte, 600)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		f.Add(script)
	}
	scripts.Fuzz(f, 3000, func(t *testing.T, data scripts.Bytes) {
		newFuzzed(t, data).run()
	})
}

type fuzzed struct {
	t *testing.T
	scripts.Bytes
	machine, twin *Machine
	now           time.Time
	hosts         []Host
	// granted holds each run's last grant, and demands what it requested.
	granted map[Run]Grant
	placed  map[Run]bool
	asked   map[Run]Asked
}

func newFuzzed(t *testing.T, data scripts.Bytes) *fuzzed {
	f := &fuzzed{
		t: t, Bytes: data, machine: New(), twin: New(), now: time.Unix(1000, 0),
		granted: map[Run]Grant{}, placed: map[Run]bool{}, asked: map[Run]Asked{},
	}
	for i := range 6 {
		h := Host{Name: fmt.Sprint("h", i), Instance: "i", Slots: []int{4, 8, 2, 8, 1, 0}[i], Oversubscribe: i%2 == 0}
		for range []int{0, 4, 0, 2, 0, 1}[i] {
			h.GPUs = append(h.GPUs, GPU{Model: "H100"})
		}
		f.hosts = append(f.hosts, h)
	}
	return f
}

func (f *fuzzed) number(below int) int { return int(f.Byte()) % below }
func (f *fuzzed) anyRun() Run          { return Run{WorkflowID: fmt.Sprint("r", f.number(12)), RunID: "1"} }
func (f *fuzzed) anyHost() Host        { return f.hosts[f.number(len(f.hosts))] }

func (f *fuzzed) demand() Demand {
	d := Demand{Priority: 1 + f.number(5)}
	for range 1 + f.number(3) {
		g := Group{Tasks: 1 + f.number(7)}
		switch f.number(8) {
		case 0:
			g.Host = f.anyHost().Name
		case 1:
			g.GPUs = AllGPUs
		case 2, 3:
			g.GPUs, g.Pool = 1+f.number(3), f.number(2)
		case 4:
			list := f.number(6)
			g.Devices = []string{"0", "1", "0,1", "2,3", "1,2", "GPU-1"}[list]
			g.GPUs, g.Pool = len(strings.Split(g.Devices, ",")), 2+list
		case 5:
			g.PerTask = 1 + f.number(2)
		}
		d.Groups = append(d.Groups, g)
	}
	switch f.number(13) {
	case 0:
		d.MaxHosts = 1 + f.number(3)
	case 1:
		d.MinHosts = 1 + f.number(3)
		d.MaxHosts = d.MinHosts
	case 2:
		d.PerHost = 1 + f.number(4)
	case 3:
		d.Select = []string{"h[0-3]"}
	case 4:
		d.Select = []string{fmt.Sprintf("h[%d%[1]d-5]", 2*f.number(2))}
	case 5:
		d.Select = []string{"h1", "h3"}
	case 6:
		d.Exclusive = true
	case 12:
		d.Groups = []Group{{Tasks: 8, GPUs: f.number(3)}}
		d.Elastic, d.MinHosts, d.MaxHosts, d.PerHost = true, 1+f.number(3), 4, 2
		d.JoinWait = time.Duration(f.number(3)) * time.Minute
	}
	d.Spread = f.number(4) == 0
	if f.number(2) == 0 {
		d.MaxRunTime = time.Duration(1+f.number(20)) * time.Minute
	}
	if f.number(4) == 0 {
		d.Prefer = []string{f.anyHost().Name, f.anyHost().Name}
	}
	return d
}

func (f *fuzzed) event() Event {
	switch f.number(20) {
	case 0, 1, 2:
		j := f.join(f.anyHost())
		if f.number(4) == 0 {
			j.Host.Failing = []FailedCheck{{Check: "disk", Reason: "it is full", Since: f.now}}
		}
		return j
	case 3:
		return Silent{Name: f.anyHost().Name, Instance: "i", Now: f.now}
	case 4:
		return Left{Name: f.anyHost().Name, Instance: "i", Now: f.now}
	case 5:
		return Cordoned{Name: f.anyHost().Name, Drain: f.number(2) == 0, Now: f.now}
	case 6, 7:
		return Uncordoned{Name: f.anyHost().Name, Now: f.now}
	case 8, 9, 10, 11:
		run := f.anyRun()
		a, known := f.asked[run]
		if !known || f.placed[run] {
			generation := 0
			if known {
				generation = a.Generation + 1
			}
			a = Asked{Run: run, Generation: generation, Demand: f.demand(), Since: f.now.Add(-time.Duration(f.number(50)) * time.Second), Last: f.number(9) == 0}
		}
		a.Now = f.now
		return a
	case 12, 13, 14:
		run := f.anyRun()
		return Placed{Run: run, Generation: f.asked[run].Generation, Now: f.now}
	case 15:
		run := f.anyRun()
		return Refused{Run: run, Generation: f.asked[run].Generation, Host: f.anyHost().Name, Reason: "no", Now: f.now}
	case 16:
		return Freed{Run: f.anyRun(), Now: f.now}
	case 17:
		return Freed{Run: f.anyRun(), Host: f.anyHost().Name, Now: f.now}
	default:
		f.now = f.now.Add(time.Duration(f.Byte()) * 3 * time.Second)
		return Passed{Now: f.now}
	}
}

// join returns a host's truthful message: the tasks that were placed on it and not freed.
func (f *fuzzed) join(h Host) Joined {
	j := Joined{Host: h, Now: f.now}
	if known := f.machine.host(h.Name); known != nil {
		for _, o := range known.Holds {
			j.Holds = append(j.Holds, o.Holding)
		}
	}
	return j
}

func (f *fuzzed) run() {
	for len(f.Bytes) > 0 {
		f.step(f.event())
	}
	f.finish()
}

// finish makes all hosts ready and finishes all runs one after another. All waiting runs must then
// get their turn.
func (f *fuzzed) finish() {
	f.now = f.now.Add(time.Hour)
	for _, h := range f.hosts {
		f.step(f.join(h))
		f.step(Uncordoned{Name: h.Name, Now: f.now})
	}
	f.now = f.now.Add(time.Hour)
	for range 100 {
		f.now = f.now.Add(time.Minute)
		f.step(Passed{Now: f.now})
		for run := range 12 {
			id := Run{WorkflowID: fmt.Sprint("r", run), RunID: "1"}
			r := f.machine.runs[id]
			switch {
			case r == nil:
			case r.State != waiting:
				f.step(Freed{Run: id, Now: f.now})
			case len(r.held) > 0: // as a Return asks
				f.step(Freed{Run: id, Host: r.held[0].Name, Now: f.now})
			}
		}
	}
	for _, w := range f.machine.Queue() {
		if f.machine.Impossible(f.asked[w.Run].Demand) == nil {
			f.t.Fatalf("%v waits on an empty fleet: %s", w.Run, w.Why)
		}
	}
	if n := len(f.machine.runs); n != len(f.machine.waiting) {
		f.t.Fatalf("%d runs are kept, and %d wait", n, len(f.machine.waiting))
	}
}

func (f *fuzzed) step(e Event) {
	t := f.t
	// A query changes nothing, so the twin does not get it.
	_, _ = f.machine.Plan(Demand{Priority: 2, Groups: []Group{{Tasks: 3}}, PerHost: 2, Elastic: true, MinHosts: 1, MaxHosts: 2})
	_, _ = f.machine.Plan(Demand{Priority: 4, Groups: []Group{{Tasks: 4}}, Exclusive: true})
	f.machine.Queue()
	if f.Byte()%4 == 0 {
		f.twin = f.copied(f.twin)
	}
	again := false // the earlier grant may be repeated
	switch e := e.(type) {
	case Joined:
		if err := f.machine.CheckJoin(e); err != nil {
			t.Fatal(err)
		}
	case Asked:
		again = true
		f.asked[e.Run] = e
		if f.placed[e.Run] {
			delete(f.placed, e.Run)
			delete(f.granted, e.Run)
		}
	case Placed:
		if _, ok := f.granted[e.Run]; ok {
			f.placed[e.Run] = true
		}
	case Refused:
		if !f.placed[e.Run] {
			delete(f.granted, e.Run)
		}
	case Freed:
		if e.Host == "" {
			delete(f.granted, e.Run)
			delete(f.placed, e.Run)
			delete(f.asked, e.Run)
		}
	}
	actions := f.machine.Step(e)
	if twin := f.twin.Step(e); !reflect.DeepEqual(scripts.JSON(t, actions), scripts.JSON(t, twin)) {
		t.Fatalf("%#v: not deterministic:\n%s\n%s", e, scripts.JSON(t, actions), scripts.JSON(t, twin))
	}
	var fresh []Run
	for _, a := range actions {
		g, ok := a.(Grant)
		if !ok {
			continue
		}
		if g.Refusal != "" {
			delete(f.asked, g.Run)
			continue
		}
		if last, granted := f.granted[g.Run]; granted && (!again || !reflect.DeepEqual(last, g)) {
			t.Fatalf("%#v: %v is granted twice: %v, %v", e, g.Run, last, g)
		} else if granted {
			continue
		}
		f.granted[g.Run] = g
		fresh = append(fresh, g.Run)
		f.checkGrant(g)
	}
	f.checkRoom()
	f.checkOrder(e, fresh)
	if one, other := scripts.JSON(t, f.machine.Queue()), scripts.JSON(t, f.twin.Queue()); one != other {
		t.Fatalf("%#v: not deterministic:\n%s\n%s", e, one, other)
	}
	if one, other := scripts.JSON(t, f.machine.Hosts()), scripts.JSON(t, f.twin.Hosts()); one != other {
		t.Fatalf("%#v: not deterministic:\n%s\n%s", e, one, other)
	}
}

func (f *fuzzed) copied(m *Machine) *Machine {
	var s State
	if err := json.Unmarshal([]byte(scripts.JSON(f.t, m.State())), &s); err != nil {
		f.t.Fatal(err)
	}
	return Resume(s)
}

// checkGrant compares a grant with its run's demand.
func (f *fuzzed) checkGrant(g Grant) {
	t, d := f.t, f.asked[g.Run].Demand
	byRank := map[int]int{} // maps ranks to places
	for at, p := range g.Places {
		h := f.machine.host(p.Host)
		if h == nil || h.state() != HostReady {
			t.Fatalf("%v is granted on %s, which is not ready", g.Run, p.Host)
		}
		if at > 0 && g.Places[at-1].Ranks[0].First > p.Ranks[0].First {
			t.Fatalf("not in the order of ranks: %v", g)
		}
		n := 0
		for _, r := range p.Ranks {
			for rank := r.First; rank < r.End; rank++ {
				if _, twice := byRank[rank]; twice {
					t.Fatalf("rank %d is placed twice: %v", rank, g)
				}
				byRank[rank] = at
				n++
			}
		}
		if d.PerHost > 0 && n > d.PerHost {
			t.Fatalf("%d tasks on %s: %v", n, p.Host, g)
		}
		if !selects(d.Select, p.Host) {
			t.Fatalf("%s was not selected: %v", p.Host, g)
		}
		f.checkDevices(g, p, d)
		if d.Exclusive && h.users != 1 {
			t.Fatalf("%v is not alone on %s", g.Run, p.Host)
		}
	}
	if n := len(g.Places); n < d.MinHosts || d.MaxHosts > 0 && n > d.MaxHosts {
		t.Fatalf("%d hosts: %v, %#v", n, g, d)
	}
	d = d.on(len(g.Places))
	rank := 0
	for i := range d.Groups {
		for range d.Groups[i].Tasks {
			at, placed := byRank[rank]
			if !placed {
				t.Fatalf("rank %d is placed nowhere: %v", rank, g)
			}
			if host := d.Groups[i].Host; host != "" && host != g.Places[at].Host {
				t.Fatalf("rank %d is bound to %s: %v", rank, host, g)
			}
			rank++
		}
	}
	if len(byRank) != rank {
		t.Fatalf("%d tasks are placed, of %d", len(byRank), rank)
	}
}

// checkDevices compares a place's GPUs with the tasks' demand.
func (f *fuzzed) checkDevices(g Grant, p Place, d Demand) {
	here := func(first, end int) (n int) {
		for _, r := range p.Ranks {
			n += max(0, min(end, r.End)-max(first, r.First))
		}
		return n
	}
	h, first, wanted := f.machine.host(p.Host), 0, 0
	for _, group := range d.Groups {
		n := here(first, first+group.Tasks)
		first += group.Tasks
		if n == 0 || len(h.GPUs) == 0 {
			continue
		}
		wanted += n * group.PerTask
		for name := range strings.SplitSeq(group.Devices, ",") {
			if name != "" && h.knows([]string{name}) && !slices.Contains(p.Devices, name) {
				f.t.Fatalf("%v is granted %v on %s, and wants %s", g.Run, p.Devices, p.Host, group.Devices)
			}
		}
		if group.GPUs == AllGPUs && len(p.Devices) < len(h.GPUs) {
			f.t.Fatalf("%v is granted %v on %s, and wants all", g.Run, p.Devices, p.Host)
		}
	}
	if len(p.Devices) < wanted {
		f.t.Fatalf("%v is granted %v on %s, and its tasks need %d", g.Run, p.Devices, p.Host, wanted)
	}
}

// checkRoom compares held and granted resources with the hosts' resources.
func (f *fuzzed) checkRoom() {
	for _, h := range f.machine.hosts {
		used, alone := room{}, false
		owners := map[string]Run{}
		h.each(func(r *run, s room, exclusive bool) {
			for _, name := range h.devicesOf(r) {
				if other, taken := owners[name]; taken || !h.knows([]string{name}) {
					f.t.Fatalf("%v and %v have GPU %s of %s", r.ID, other, name, h.Name)
				}
				owners[name] = r.ID
			}
			if n := len(h.devicesOf(r)); n < s.gpus {
				f.t.Fatalf("%v has %d GPUs of %s, and %d are counted", r.ID, n, h.Name, s.gpus)
			}
			used = room{used.slots + s.slots, used.gpus + s.gpus}
			alone = alone || exclusive
		})
		over := used.slots > h.all().slots
		if over && (!h.Oversubscribe || h.users != 1) || used.gpus > len(h.GPUs) || alone && h.users > 1 {
			f.t.Fatalf("host %s has too much: %v, %d users", h.Name, used, h.users)
		}
	}
}

// checkOrder finds a grant that delays an earlier waiting run: one that could have started earlier
// without the grant, or with fewer other runs gone.
func (f *fuzzed) checkOrder(e Event, fresh []Run) {
	for _, id := range fresh {
		r := f.machine.runs[id]
		// Find the first run that waits before it.
		i := slices.IndexFunc(f.machine.waiting, func(w *run) bool {
			return before(w, r) < 0 && f.machine.couldStart(w, f.machine.openFor(w))
		})
		if i < 0 {
			continue
		}
		head := f.machine.waiting[i]
		with, _ := f.machine.turn(head, f.machine.openFor(head))
		places := r.Places
		f.machine.takeBack(r)
		without, _ := f.machine.turn(head, f.machine.openFor(head))
		if !without.IsZero() && (with.IsZero() || with.After(without)) {
			f.t.Fatalf("%#v: %v delays %v from %v to %v", e, r.ID, head.ID, without, with)
		}
		if without.IsZero() {
			f.checkAnyEnd(head, r, places)
		}
		f.machine.grant(r, places)
	}
}

// checkAnyEnd finishes some runs in any order, and checks that the head can start with r if it
// could without r.
func (f *fuzzed) checkAnyEnd(head, r *run, places []place) {
	ends := map[*run]time.Time{}
	for _, h := range f.machine.hosts {
		h.each(func(o *run, _ room, _ bool) {
			if _, seen := ends[o]; !seen {
				ends[o] = o.Ends
				if o != r && f.Byte()%2 == 0 {
					o.Ends = f.now.Add(-time.Second)
				} else {
					o.Ends = time.Time{}
				}
			}
		})
	}
	hosts := f.machine.openFor(head)
	fits := func() bool {
		return f.machine.search(head, hosts, func(h *host) room {
			free, alone := h.roomAt(head, f.now)
			if head.Demand.Exclusive && !alone {
				return room{}
			}
			return free
		}) != nil
	}
	without := fits()
	end := r.Ends
	r.Ends = time.Time{}
	f.machine.grant(r, places)
	r.Ends = time.Time{}
	with := fits()
	f.machine.takeBack(r)
	r.Ends = end
	for o, end := range ends {
		o.Ends = end
	}
	if without && !with {
		f.t.Fatalf("%v is in the way of %v", r.ID, head.ID)
	}
}
