package fleet_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// TestScripts runs the scripts in testdata, which list a fleet's events and its actions. `go test
// -run Scripts -rewrite` rewrites the expected results.
//
// A script consists of the directives
//
//	fleet                  starts a fleet without hosts
//	events                 applies events, one per line
//	hosts, queue           show the fleet's hosts and queue
//	holds RUN              shows a run's hosts
//	plan DEMAND            shows where a run would be placed now
//	impossible DEMAND      shows why a run could never be placed
//	resume                 continues with its state after a round trip through JSON
//	wake                   shows when the fleet next needs the time
//
// and events consists of the lines
//
//	join NAME [slots=N] [oversubscribe] [gpus=N] [model=NAME] [memory=SIZE] [cpus=N]
//	     [failing=CHECK:REASON] [instance=NAME] [holds=RUN:GENERATION:TASKS[:GPU+GPU…[:STUCK]],…]
//	silent NAME · left NAME · cordon NAME [REASON] · drain NAME [REASON] · uncordon NAME
//	ask RUN DEMAND [gen=N] [try=N] [since=DURATION ago] [last]
//	placed RUN [gen=N] · refused RUN HOST [gen=N] [REASON] · freed RUN [HOST]
//	after DURATION         time passes
//
// where a demand consists of
//
//	tasks=N, or pinned=HOST:N,…   gpus=N|all|NAME+NAME…  gpus-per-task=N   then=N  more tasks, without GPUs
//	hosts=N|MIN:MAX  per-host=N  elastic[=JOIN-WAIT]  select=PATTERN  spread  exclusive
//	priority=N  run-time=DURATION  prefer=HOST,…  wait-for-hosts
func TestScripts(t *testing.T) {
	scripts.Run(t, func() map[string]scripts.Directive {
		var s *script
		return map[string]scripts.Directive{
			"fleet": func(*testing.T, *datadriven.TestData) string {
				s = &script{machine: fleet.New(), now: scriptStart}
				return ""
			},
			"events": func(t *testing.T, d *datadriven.TestData) string { return scripts.Events(t, d, s.step) },
			"hosts":  func(*testing.T, *datadriven.TestData) string { return s.hosts() },
			"queue":  func(*testing.T, *datadriven.TestData) string { return s.queue() },
			"holds":  func(_ *testing.T, d *datadriven.TestData) string { return s.holds(d.CmdArgs[0].String()) },
			"plan": func(t *testing.T, d *datadriven.TestData) string {
				places, err := s.machine.Plan(demandIn(t, d))
				if err != nil {
					return err.Error() + "\n"
				}
				return placesText(places) + "\n"
			},
			"impossible": func(t *testing.T, d *datadriven.TestData) string {
				if err := s.machine.Impossible(demandIn(t, d)); err != nil {
					return err.Error() + "\n"
				}
				return "possible\n"
			},
			"resume": func(t *testing.T, _ *datadriven.TestData) string {
				s.machine = resumed(t, s.machine)
				return ""
			},
			"wake": func(*testing.T, *datadriven.TestData) string {
				if at := s.machine.Wake(); !at.IsZero() {
					return "in " + at.Sub(s.now).String() + "\n"
				}
				return "never\n"
			},
		}
	})
}

// demandIn returns a directive's demand.
func demandIn(t *testing.T, d *datadriven.TestData) fleet.Demand {
	var words []string
	for _, a := range d.CmdArgs {
		words = append(words, a.String())
	}
	demand, _, err := demandOf(words)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return demand
}

// resumed returns the fleet as restored by another execution of its workflow.
func resumed(t testing.TB, m *fleet.Machine) *fleet.Machine {
	t.Helper()
	b, err := json.Marshal(m.State())
	if err != nil {
		t.Fatal(err)
	}
	var s fleet.State
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return fleet.Resume(s)
}

var scriptStart = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

type script struct {
	machine *fleet.Machine
	now     time.Time
}

func (s *script) step(line string) (string, error) {
	e, err := s.event(strings.Fields(line))
	if err != nil {
		return "", err
	}
	switch e := e.(type) {
	case fleet.Joined:
		err = s.machine.CheckJoin(e)
	case fleet.Cordoned:
		err = s.machine.CheckCordon(e)
	case fleet.Uncordoned:
		err = s.machine.CheckUncordon(e)
	}
	var out strings.Builder
	if err != nil {
		fmt.Fprintf(&out, "  refused: %v\n", err)
	}
	for _, a := range s.machine.Step(e) {
		fmt.Fprintf(&out, "  %s\n", actionText(a))
	}
	return out.String(), nil
}

func actionText(a fleet.Action) string {
	switch a := a.(type) {
	case fleet.Grant:
		name := a.Run.WorkflowID
		if a.Generation > 0 || a.Try > 0 {
			name += fmt.Sprintf(" (generation %d, try %d)", a.Generation, a.Try)
		}
		if a.Refusal != "" {
			return name + " is refused: " + a.Refusal
		}
		return name + ": " + placesText(a.Places)
	case fleet.Move:
		text := a.Run.WorkflowID + " is to leave " + a.Host
		if a.Reason != "" {
			text += " (" + a.Reason + ")"
		}
		return text
	case fleet.Return:
		return a.Run.WorkflowID + " is to give back what it holds"
	}
	return fmt.Sprintf("%#v", a)
}

func placesText(places []fleet.Place) string {
	var list []string
	for _, p := range places {
		var ranks []string
		for _, r := range p.Ranks {
			if r.End == r.First+1 {
				ranks = append(ranks, strconv.Itoa(r.First))
			} else {
				ranks = append(ranks, fmt.Sprintf("%d-%d", r.First, r.End-1))
			}
		}
		list = append(list, p.Host+"["+strings.Join(ranks, ",")+"]")
	}
	return strings.Join(list, " ")
}

func runOf(name string) fleet.Run { return fleet.Run{WorkflowID: name, RunID: "1"} }

func (s *script) event(f []string) (fleet.Event, error) {
	arg := func(i int) string {
		if i < len(f) {
			return f[i]
		}
		return ""
	}
	rest := func(i int) string { return strings.Join(f[min(i, len(f)):], " ") }
	generation := 0
	var words []string
	for _, w := range f {
		if n, ok := strings.CutPrefix(w, "gen="); ok {
			generation, _ = strconv.Atoi(n)
		} else {
			words = append(words, w)
		}
	}
	f = words
	instance := func() string {
		for _, h := range s.machine.Hosts() {
			if h.Name == arg(1) {
				return h.Instance
			}
		}
		return ""
	}
	switch f[0] {
	case "join":
		return s.join(f[1], f[2:])
	case "silent":
		return fleet.Silent{Name: arg(1), Instance: instance(), Now: s.now}, nil
	case "left":
		return fleet.Left{Name: arg(1), Instance: instance(), Now: s.now}, nil
	case "cordon", "drain":
		return fleet.Cordoned{Name: arg(1), Reason: rest(2), Drain: f[0] == "drain", Now: s.now}, nil
	case "uncordon":
		return fleet.Uncordoned{Name: arg(1), Now: s.now}, nil
	case "ask":
		demand, e, err := demandOf(f[2:])
		e.Run, e.Demand, e.Generation, e.Now = runOf(arg(1)), demand, generation, s.now
		if e.Since = s.now; !e.Now.IsZero() {
			for _, w := range f {
				if ago, ok := strings.CutPrefix(w, "since="); ok {
					d, err := time.ParseDuration(ago)
					if err != nil {
						return nil, err
					}
					e.Since = s.now.Add(-d)
				}
			}
		}
		return e, err
	case "placed":
		return fleet.Placed{Run: runOf(arg(1)), Generation: generation, Now: s.now}, nil
	case "refused":
		return fleet.Refused{Run: runOf(arg(1)), Generation: generation, Host: arg(2), Reason: rest(3), Now: s.now}, nil
	case "freed":
		return fleet.Freed{Run: runOf(arg(1)), Host: arg(2), Now: s.now}, nil
	case "after":
		d, err := time.ParseDuration(arg(1))
		s.now = s.now.Add(d)
		return fleet.Passed{Now: s.now}, err
	}
	return nil, fmt.Errorf("no such event")
}

func (s *script) join(name string, options []string) (fleet.Event, error) {
	e := fleet.Joined{Host: fleet.Host{Name: name, Instance: "i1", Boot: "b1", Address: name + ".net"}, Now: s.now}
	gpus, gpu := 0, fleet.GPU{}
	for _, o := range options {
		var err error
		key, value, _ := strings.Cut(o, "=")
		size := func() (n int64) { n, err = spec.ParseSize(value); return n }
		switch key {
		case "slots":
			e.Host.Slots = int(size())
		case "oversubscribe":
			e.Host.Oversubscribe = true
		case "gpus":
			gpus = int(size())
		case "model":
			gpu.Model = strings.ReplaceAll(value, "_", " ")
		case "memory":
			e.Host.Memory = size()
		case "cpus":
			e.Host.CPUs = int(size())
		case "instance":
			e.Host.Instance = value
		case "failing":
			check, reason, _ := strings.Cut(value, ":")
			e.Host.Failing = append(e.Host.Failing, fleet.FailedCheck{Check: check, Reason: strings.ReplaceAll(reason, "_", " "), Since: s.now})
		case "holds":
			for one := range strings.SplitSeq(value, ",") {
				p := strings.Split(one, ":")
				h := fleet.Holding{Run: runOf(p[0])}
				for i, to := range []*int{&h.Generation, &h.Tasks} {
					if i+1 < len(p) && err == nil {
						*to, err = strconv.Atoi(p[i+1])
					}
				}
				if len(p) > 3 {
					h.Devices = strings.FieldsFunc(p[3], func(c rune) bool { return c == '+' })
				}
				if len(p) > 4 {
					h.Stuck = p[4]
				}
				e.Holds = append(e.Holds, h)
			}
		default:
			return nil, fmt.Errorf("%s is not known", o)
		}
		if err != nil {
			return nil, err
		}
	}
	for range gpus {
		e.Host.GPUs = append(e.Host.GPUs, gpu)
	}
	return e, nil
}

func demandOf(options []string) (d fleet.Demand, e fleet.Asked, err error) {
	gpus, perTask, devices := 0, 0, ""
	for _, o := range options {
		key, value, _ := strings.Cut(o, "=")
		number := func() (n int) {
			if err == nil {
				n, err = strconv.Atoi(value)
			}
			return n
		}
		switch key {
		case "tasks":
			d.Groups = append(d.Groups, fleet.Group{Tasks: number()})
		case "then":
			d.Groups = append(d.Groups, fleet.Group{Tasks: number(), GPUs: 0, Pool: -1})
		case "pinned":
			for one := range strings.SplitSeq(value, ",") {
				host, n, _ := strings.Cut(one, ":")
				value = n
				d.Groups = append(d.Groups, fleet.Group{Host: host, Tasks: number()})
			}
		case "gpus":
			switch names := strings.Split(value, "+"); {
			case value == "all":
				gpus = fleet.AllGPUs
			case len(names) > 1:
				gpus, devices = len(names), strings.Join(names, ",")
			default:
				gpus = number()
			}
		case "gpus-per-task":
			perTask = number()
		case "hosts":
			from, to, two := strings.Cut(value, ":")
			value = from
			d.MinHosts = number()
			if d.MaxHosts = d.MinHosts; two {
				value = to
				d.MaxHosts = number()
			}
		case "per-host":
			d.PerHost = number()
		case "elastic":
			if d.Elastic = true; value != "" {
				d.JoinWait, err = time.ParseDuration(value)
			}
		case "select":
			d.Select = append(d.Select, value)
		case "spread":
			d.Spread = true
		case "exclusive":
			d.Exclusive = true
		case "wait-for-hosts":
			d.WaitForHosts = true
		case "priority":
			d.Priority = number()
		case "run-time":
			d.MaxRunTime, err = time.ParseDuration(value)
		case "prefer":
			d.Prefer = strings.Split(strings.ReplaceAll(value, "_", ""), ",")
		case "try":
			e.Try = number()
		case "last":
			e.Last = true
		case "since":
		default:
			return d, e, fmt.Errorf("%s is not known", o)
		}
	}
	for i := range d.Groups {
		if d.Groups[i].Pool == 0 {
			d.Groups[i].GPUs, d.Groups[i].PerTask, d.Groups[i].Devices = gpus, perTask, devices
		}
	}
	return d, e, err
}

func (s *script) since(t time.Time) string { return t.Sub(scriptStart).String() }

func (s *script) hosts() string {
	var out strings.Builder
	for _, h := range s.machine.Hosts() {
		fmt.Fprintf(&out, "%s %s since %s: %d of %d slots", h.Name, h.State, s.since(h.Since), h.Used, h.Slots)
		if len(h.GPUs) > 0 {
			fmt.Fprintf(&out, ", %d of %d GPUs", h.UsedGPUs, len(h.GPUs))
		}
		if h.Reason != "" {
			fmt.Fprintf(&out, " (%s)", h.Reason)
		}
		for _, o := range h.Holds {
			fmt.Fprintf(&out, " %s:%d", o.Run.WorkflowID, o.Tasks)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func (s *script) queue() string {
	var out strings.Builder
	for _, w := range s.machine.Queue() {
		fmt.Fprintf(&out, "%d. %s, priority %d, since %s: %s\n", w.Position, w.Run.WorkflowID, w.Priority, s.since(w.Since), w.Why)
	}
	return out.String()
}

func (s *script) holds(run string) string {
	var out strings.Builder
	for _, h := range s.machine.Hosts() {
		for _, o := range h.Holds {
			if o.Run == runOf(run) {
				fmt.Fprintf(&out, "%s: %d tasks, GPUs %v of generation %d\n", h.Name, o.Tasks, o.Devices, o.Generation)
			}
		}
	}
	return out.String()
}
