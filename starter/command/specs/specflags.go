package specs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/hosts/hostlist"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// SpecFlags holds the flags that build a spec, or change one from a file: those for the fields
// in package spec's table, and the ones declared here, which other launchers use to set the
// number of tasks and their variables.
type SpecFlags struct {
	Flags *pflag.FlagSet

	np           int
	nprocPerNode string
	nnodes       string
	hosts        string
	hostfile     string
	// Others describes the hosts, if some are other machines.
	Others *OtherHosts
	tasks  []string
	sets   []string

	variables variables

	// Warnings are about flags that are valid but probably unintended.
	Warnings []string
}

func (f *SpecFlags) Register(fs *pflag.FlagSet) {
	before := map[string]bool{}
	fs.VisitAll(func(f *pflag.Flag) { before[f.Name] = true })
	defer SetSections(fs, before)
	f.Flags = fs
	fs.SortFlags = false
	fs.VarP(cli.OnceIn(&f.np, 1), "np", "n", "start `N` tasks of type worker; also -np")
	fs.StringArrayVar(&f.tasks, "task", nil, "start tasks of a type, as `TYPE=N` or TYPE=HOST:PORT,...; repeat for more types")
	fs.StringVar(&f.nprocPerNode, "nproc-per-node", "", "start `N` tasks on each host, like torchrun: a number, gpu, cpu or auto")
	fs.StringVar(&f.nnodes, "nnodes", "", "use `N` hosts, like torchrun, or MIN:MAX for an elastic run")
	fs.StringVarP(&f.hosts, "host", "H", "", "run on `HOSTS`, as HOST[:SLOTS],...; other hosts are reached over ssh")
	fs.StringVar(&f.hostfile, "hostfile", "", "read the hosts from `FILE`, in mpirun's format")
	fs.StringArrayVar(&f.sets, "set", nil, "set any field of the spec, as `FIELD=VALUE`, such as stop.signal=SIGINT; see `clusterrun help spec`")
	for _, flag := range spec.Flags() {
		addFlag(fs, flag)
		if flag.Name == "dir" {
			f.variables.register(fs)
		}
	}
}

// apply applies the flags to a spec and returns every problem.
func (f *SpecFlags) apply(s *spec.RunSpec) []string {
	var problems []string
	note := func(err error) {
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	given := map[string]bool{}
	for _, text := range f.tasks {
		g, err := parseTask(text)
		switch {
		case err != nil:
		case given[g.Type]:
			err = fmt.Errorf("--task %q: type %s already has a --task; combine them into one", text, g.Type)
		default:
			given[g.Type] = true
			s.Tasks = setGroup(s.Tasks, g)
		}
		note(err)
	}
	n, err := f.count(s)
	note(err)
	switch {
	case err != nil && len(s.Tasks) == 0:
		// That the number is unknown has already been reported. A spec without tasks would be
		// reported as a second problem.
		s.Tasks, _ = setCount(nil, 1)
	case err != nil:
	case n != nil && f.Given("task"):
		note(fmt.Errorf("--task and -n (or --nproc-per-node, -H, --hostfile) both set the number of tasks; use only one of them"))
	case n != nil:
		s.Tasks, err = setCount(s.Tasks, *n)
		note(err)
	case len(s.Tasks) == 0:
		s.Tasks, err = setCount(nil, 1)
		note(err)
	}
	env, wrong := f.variables.over(s.Env)
	s.Env, problems = env, append(problems, wrong...)
	for _, flag := range spec.Flags() {
		if f.Given(flag.Name) {
			setField(flag.In(s), f.Flags.Lookup(flag.Name).Value)
		}
	}
	for _, text := range f.sets {
		field, value, given := strings.Cut(text, "=")
		if !given {
			note(fmt.Errorf("--set %q: write FIELD=VALUE", text))
		} else if err, invalid := errors.AsType[*spec.InvalidSpecError](s.Set(field, value)); invalid {
			for _, p := range err.Problems {
				problems = append(problems, "--set "+p.String())
			}
		}
	}
	f.applyRestarts(s)
	return problems
}

func (f *SpecFlags) Given(name string) bool { return f.Flags.Changed(name) }

// applyRestarts enables restarts if --max-restarts is positive. With torchrun's flags, all workers
// restart together, because a process group's ranks cannot continue with a new peer.
func (f *SpecFlags) applyRestarts(s *spec.RunSpec) {
	if f.Given("nnodes") && s.IsElastic() && s.RestartScope == "" {
		s.RestartScope = spec.RestartScopeGroup
		if s.MaxRestarts == nil {
			s.MaxRestarts = new(0)
		}
	}
	if !f.Given("max-restarts") || *s.MaxRestarts <= 0 {
		return
	}
	if s.RestartScope == "" && (f.Given("nproc-per-node") || f.Given("nnodes")) {
		s.RestartScope = spec.RestartScopeGroup
	}
	if !f.Given("auto-restart") && s.RestartScope != spec.RestartScopeGroup {
		s.AutoRestart = true
	}
}

// count returns the number of tasks given by the flags, or nil if no flag gives it. If the number
// depends on hosts that have not been queried yet, it returns 1.
func (f *SpecFlags) count(s *spec.RunSpec) (*int, error) {
	hosts, flag, err := f.hostList()
	if err != nil {
		return nil, err
	}
	if f.Given("nnodes") {
		most, err := f.applyNodes(s, len(hosts))
		switch {
		case err != nil:
			return nil, err
		case most > 1 && len(hosts) == 0:
			return f.countOnNodes(s, most)
		}
	}
	if hostlist.Elsewhere(hosts) {
		return f.countElsewhere(s, hosts, flag)
	}
	var n *int
	if f.Given("np") {
		n = &f.np
	}
	if f.Given("nproc-per-node") {
		m, err := ParseNProc(f.nprocPerNode, LocalMachine())
		if err != nil {
			return nil, err
		}
		if n != nil && *n != m {
			return nil, fmt.Errorf("-n %d and --nproc-per-node %s contradict each other; use only one of them", *n, f.nprocPerNode)
		}
		n = &m
	}
	slots, _ := hostlist.Slots(hosts)
	switch {
	case slots == 0:
		return n, nil
	case n == nil:
		return &slots, nil
	case *n > slots:
		return nil, fmt.Errorf("%s need %s, but -H or --hostfile gives this machine %d; write -H localhost:%d",
			units.Count(*n, "task", "tasks"), units.Count(*n, "slot", "slots"), slots, *n)
	}
	return n, nil
}

// countElsewhere is like count for a list with hosts other than this machine.
func (f *SpecFlags) countElsewhere(s *spec.RunSpec, hosts []hostlist.Host, flag string) (*int, error) {
	f.Others = &OtherHosts{hosts: hosts, Flag: flag}
	if f.Given("nproc-per-node") {
		f.Others.PerHost = f.nprocPerNode
	}
	switch counted := len(s.Tasks) > 1 || len(s.Tasks) == 1 && (s.Tasks[0].Count != nil || len(s.Tasks[0].Addresses) > 0); {
	case f.Given("np"):
		f.Others.count = f.np
		return &f.np, nil
	case counted && f.Others.PerHost == "":
		f.Others.inSpec = true
		return nil, nil
	}
	return new(1), nil
}

// inFlags makes a problem name the flag that set the field, so that the user can correct it.
// without reports whether there is no file.
func (f *SpecFlags) inFlags(p spec.Problem, without bool) spec.Problem {
	for _, flag := range spec.Flags() {
		rest, within := strings.CutPrefix(p.Path, flag.Path)
		if within && (rest == "" || rest[0] == '[' || rest[0] == '.') && f.Given(flag.Name) {
			p.Path, p.Line = "--"+flag.Name, 0
		}
	}
	switch {
	case !without:
	case strings.HasPrefix(p.Path, "tasks") && strings.HasSuffix(p.Path, ".count") && f.Given("np"):
		p.Path, p.Remedy = "-n", ""
	case strings.HasPrefix(p.Path, "tasks") && strings.HasSuffix(p.Path, ".count") && f.Given("nproc-per-node"):
		p.Path, p.Remedy = "--nproc-per-node", ""
	case strings.HasPrefix(p.Path, "tasks") && f.Given("task"):
		p.Path = "--task, " + p.Path
	}
	return p
}
