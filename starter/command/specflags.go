package command

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// specFlags are the flags that make a spec, or change one from a file.
type specFlags struct {
	flags *pflag.FlagSet

	np           int
	nprocPerNode string
	nnodes       string
	hosts        string
	hostfile     string
	tasks        []string

	name, dir         string
	env, export       []string
	envFromShell      bool
	autoRestart       bool
	restartScope      string
	barriers          string
	maxRestarts       int
	onFailure         string
	timeout           duration
	maxRunTime        duration
	placementTimeout  duration
	stopSignal        string
	stopGrace         duration
	togetherGrace     duration
	onDisconnect      string
	cleanErrors       []string
	ignoreLiveTasks   bool
	queueSize         int
	transientFailures int
	chiefGrace        duration
	dependenceOnChief bool
	noDependence      bool
	rpcLayer          string
	logDir            string
	redirects, tee    string
	localRanks        []int
	filter            []string
	timestamps        bool
	stdoutFilters     []string
	stderrFilters     []string
	devices, cpus     string
	logPrefix         string
	returnOutput      bool
	envProfiles       []string

	// warnings are about what is no mistake.
	warnings []string
}

func (f *specFlags) register(fs *pflag.FlagSet) {
	f.flags = fs
	fs.SortFlags = false
	fs.IntVarP(&f.np, "np", "n", 1, "`NUMBER` of tasks, of type worker unless a file says otherwise; also -np")
	fs.StringArrayVar(&f.tasks, "task", nil, "tasks of one type, as `TYPE=COUNT` or TYPE=HOST:PORT,...; may be repeated, the order is rank order")
	fs.StringVar(&f.nprocPerNode, "nproc-per-node", "", "as -n, in torchrun's words: `NUMBER`, gpu for one task per GPU, cpu for one per CPU, or auto: gpu where there are any, else cpu")
	fs.StringVar(&f.nnodes, "nnodes", "", "`NUMBER` of hosts, in torchrun's words: 1 for now")
	fs.StringVarP(&f.hosts, "host", "H", "", "`HOST[:SLOTS],...` in mpirun's words: this machine for now")
	fs.StringVar(&f.hostfile, "hostfile", "", "`FILE` in mpirun's form: this machine for now")

	fs.StringVar(&f.name, "name", "", "first part of the run ID (`NAME`)")
	fs.StringVar(&f.dir, "dir", "", "working `DIRECTORY` of the processes; default: the current one")
	fs.StringArrayVar(&f.env, "env", nil, "a variable for the processes, as `NAME=VALUE`; may be repeated. It is kept in the run's history: not for secrets")
	fs.StringArrayVarP(&f.export, "export", "x", nil, "a variable of this shell for the processes, as `NAME`, or NAME=VALUE, in mpirun's words; may be repeated, and is kept as with --env")
	fs.BoolVar(&f.envFromShell, "env-from-shell", false, "all variables of this shell for the processes, under those of the spec; for run without --remote they are there anyway")
	fs.StringVar(&f.rpcLayer, "rpc-layer", "", "`LAYER` in TF_CONFIG (default grpc)")
	fs.StringSliceVar(&f.envProfiles, "env-profile", nil, "sets of variables the processes get: `tensorflow,torch,jax` (default all)")

	fs.StringVar(&f.onFailure, "on-failure", "", "what a task's final failure does to the others: `stop|continue` (default stop)")
	fs.BoolVar(&f.autoRestart, "auto-restart", false, "start failed tasks again")
	fs.IntVar(&f.maxRestarts, "max-restarts", 0, "most restarts (`NUMBER`) of a task, or of the group; implies --auto-restart where above 0")
	fs.StringVar(&f.restartScope, "restart-scope", "", "what a restart starts again: `task|group` (default task, and with torchrun's --nproc-per-node group). group alone means restarts without limit")
	fs.BoolVar(&f.dependenceOnChief, "dependence-on-chief", true, "the chief's end ends the run")
	fs.BoolVar(&f.noDependence, "no-dependence-on-chief", false, "the chief's end does not end the run")
	fs.Var(&f.chiefGrace, "chief-grace", "`TIME` for the others to end by themselves after the chief (default 3s)")
	fs.Var(&f.timeout, "timeout", "stop the run after this `TIME`, with the stop signal first")
	fs.Var(&f.maxRunTime, "max-run-time", "kill the run after this `TIME`")
	fs.Var(&f.placementTimeout, "placement-timeout", "`TIME` for hosts to accept their tasks (default 1m)")
	fs.StringVar(&f.barriers, "barriers", "", "who releases the barriers of the tasks: `server|local`; local is their host alone, in microseconds (default server)")
	fs.StringVar(&f.onDisconnect, "on-disconnect", "", "what a host does while it hears nothing of the server: `keep|TIME` (of 5s or more) after which it stops its processes (default keep on one host, 2m on several)")
	fs.StringVar(&f.stopSignal, "stop-signal", "", "`SIGNAL` that asks a process to end (default SIGTERM)")
	fs.Var(&f.stopGrace, "stop-grace", "`TIME` from that signal to SIGKILL (default 30s)")
	fs.Var(&f.togetherGrace, "stop-together-grace", "`TIME` for the tasks to end by themselves once one of them asked all to stop (default 2m)")
	fs.StringSliceVar(&f.cleanErrors, "clean-errors", nil, "`KINDS` of errors with which such a stop is no failure; '' for none (default OutOfRangeError,StopIteration,EOFError,EOF)")
	fs.BoolVar(&f.ignoreLiveTasks, "ignore-live-tasks", false, "tasks that do not end within that time are stopped without that being a failure")
	fs.IntVar(&f.queueSize, "closures-queue-size", spec.DefaultQueueSize, "`NUMBER` of closures that may wait in the run's queue before schedule waits; 0 for no limit but that of bytes")
	fs.IntVar(&f.transientFailures, "closures-transient-failures", spec.DefaultTransientFailures, "which report (`NUMBER`) that the same task, such as a parameter server, does not answer is an error of the closure; the variable "+spec.EnvTransientFailures+" has another default")

	fs.StringVar(&f.logDir, "log-dir", "", "`DIRECTORY` for output files; default: logs, below the state directory")
	fs.StringVar(&f.redirects, "redirects", "", "streams that go to files, by `MASK`: 0 none, 1 stdout, 2 stderr, 3 both, or by rank 0:3,1:0 (default 3)")
	fs.StringVar(&f.tee, "tee", "", "streams that also go to the console, by `MASK` (default 3)")
	fs.IntSliceVar(&f.localRanks, "local-ranks-filter", nil, "only these local `RANKS` go to the console")
	fs.StringSliceVar(&f.filter, "filter", nil, "only these `TASKS` and types go to the console, such as worker-0,ps")
	fs.StringArrayVar(&f.stdoutFilters, "duplicate-stdout-filters", nil, "collect lines of stdout that contain `TEXT` in one file more; may be repeated")
	fs.StringArrayVar(&f.stderrFilters, "duplicate-stderr-filters", nil, "the same for stderr (`TEXT`)")
	fs.BoolVar(&f.timestamps, "timestamps", false, "put the time of day in front of console lines")
	fs.StringVar(&f.logPrefix, "log-prefix", "", "`TEMPLATE` for the start of console lines (default \"[{{.Type}}-{{.Index}}]:\")")
	fs.StringVar(&f.devices, "devices", "", "`GPUS` that the tasks share out, in CUDA_VISIBLE_DEVICES: auto, or like 0,1,2,3 (default: each task sees all)")
	fs.StringVar(&f.cpus, "cpus", "", "`CPUS` that the tasks share out and are bound to: auto, or like 0-7,16 (default: not bound)")
	fs.BoolVar(&f.returnOutput, "return-output", false, "put the last lines of the output into the result")
}

// duration is a flag's time span. It tells what to write where pflag's own says
// only what is wrong.
type duration time.Duration

func (d *duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil {
		if _, number := strconv.Atoi(text); number == nil {
			return fmt.Errorf("%q has no unit; write %ss, %sm or %sh", text, text, text, text)
		}
		return fmt.Errorf("%q is no time span; write it like 3s, 90m or 1h30m", text)
	}
	*d = duration(v)
	return nil
}

// String is empty for none, so that help does not call 0s the default.
func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}
func (d *duration) Type() string { return "duration" }

func (d duration) spec() *spec.Duration { return spec.DurationOf(time.Duration(d)) }

// apply puts the flags that were given over a spec. It returns every problem.
func (f *specFlags) apply(s *spec.RunSpec) []string {
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
			err = fmt.Errorf("--task %q: tasks of type %s are given already; give all of a type in one --task", text, g.Type)
		default:
			given[g.Type] = true
			s.Tasks = setGroup(s.Tasks, g)
		}
		note(err)
	}
	n, err := f.count()
	note(err)
	switch {
	case err != nil && len(s.Tasks) == 0:
		// How many there are is not known, and said; that there are none is not so.
		s.Tasks, _ = setCount(nil, 1)
	case err != nil:
	case n != nil && f.given("task"):
		note(fmt.Errorf("--task and -n (or --nproc-per-node, -H, --hostfile) both say how many tasks there are; give one of them"))
	case n != nil:
		s.Tasks, err = setCount(s.Tasks, *n)
		note(err)
	case len(s.Tasks) == 0:
		s.Tasks, err = setCount(nil, 1)
		note(err)
	}
	problems = append(problems, f.applyEnv(s)...)
	note(f.applyChief(s))
	f.applyRest(s)
	return problems
}

func (f *specFlags) warn(format string, args ...any) {
	f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
}

func (f *specFlags) given(name string) bool { return f.flags.Changed(name) }

func (f *specFlags) applyChief(s *spec.RunSpec) error {
	on := f.dependenceOnChief
	switch {
	case f.given("dependence-on-chief") && f.given("no-dependence-on-chief"):
		return fmt.Errorf("--dependence-on-chief and --no-dependence-on-chief contradict each other; give one of them")
	case f.given("no-dependence-on-chief"):
		on = !f.noDependence
	case !f.given("dependence-on-chief"):
		return nil
	}
	s.DependenceOnChief = &on
	return nil
}

func (f *specFlags) applyRest(s *spec.RunSpec) {
	texts := []struct {
		flag  string
		value string
		field *string
	}{
		{"name", f.name, &s.Name},
		{"dir", f.dir, &s.Dir},
		{"rpc-layer", f.rpcLayer, &s.RPCLayer},
		{"on-failure", f.onFailure, (*string)(&s.OnFailure)},
		{"restart-scope", f.restartScope, (*string)(&s.RestartScope)},
		{"barriers", f.barriers, (*string)(&s.Barriers)},
		{"stop-signal", f.stopSignal, &s.Stop.Signal},
		{"on-disconnect", f.onDisconnect, (*string)(&s.OnDisconnect)},
		{"log-dir", f.logDir, &s.Logs.Dir},
		{"redirects", f.redirects, &s.Logs.Redirects},
		{"tee", f.tee, &s.Logs.Tee},
		{"log-prefix", f.logPrefix, &s.Logs.Prefix},
	}
	for _, t := range texts {
		if f.given(t.flag) {
			*t.field = t.value
		}
	}
	times := []struct {
		flag  string
		value duration
		field **spec.Duration
	}{
		{"timeout", f.timeout, &s.Timeout},
		{"max-run-time", f.maxRunTime, &s.MaxRunTime},
		{"placement-timeout", f.placementTimeout, &s.PlacementTimeout},
		{"stop-grace", f.stopGrace, &s.Stop.Grace},
		{"chief-grace", f.chiefGrace, &s.ChiefGrace},
		{"stop-together-grace", f.togetherGrace, &s.StopTogether.Grace},
	}
	for _, t := range times {
		if f.given(t.flag) {
			*t.field = t.value.spec()
		}
	}
	if f.given("max-restarts") {
		s.MaxRestarts = &f.maxRestarts
		// In torchrun's words it counts restarts of all workers together: the ranks
		// of a process group cannot go on with a new peer.
		if s.RestartScope == "" && (f.given("nproc-per-node") || f.given("nnodes")) && f.maxRestarts > 0 {
			s.RestartScope = spec.RestartScopeGroup
		}
		s.AutoRestart = s.AutoRestart || f.maxRestarts > 0 && s.RestartScope != spec.RestartScopeGroup
	}
	if f.given("auto-restart") {
		s.AutoRestart = f.autoRestart
	}
	if f.given("clean-errors") {
		s.StopTogether.CleanErrors = append([]string{}, f.cleanErrors...)
	}
	if f.given("ignore-live-tasks") {
		s.StopTogether.IgnoreLiveTasks = f.ignoreLiveTasks
	}
	if f.given("closures-queue-size") {
		s.Closures.QueueSize = &f.queueSize
	}
	if f.given("closures-transient-failures") {
		s.Closures.TransientFailures = &f.transientFailures
	}
	if f.given("local-ranks-filter") {
		s.Logs.LocalRanksFilter = f.localRanks
	}
	if f.given("filter") {
		s.Logs.Filter = f.filter
	}
	if f.given("duplicate-stdout-filters") {
		s.Logs.DuplicateStdoutFilters = f.stdoutFilters
	}
	if f.given("duplicate-stderr-filters") {
		s.Logs.DuplicateStderrFilters = f.stderrFilters
	}
	if f.given("timestamps") {
		s.Logs.Timestamps = f.timestamps
	}
	if f.given("devices") {
		s.Devices = spec.ResourcesOf(f.devices)
	}
	if f.given("cpus") {
		s.CPUs = spec.ResourcesOf(f.cpus)
	}
	if f.given("return-output") {
		s.ReturnOutput = f.returnOutput
	}
	if f.given("env-profile") {
		s.EnvProfiles = nil
		for _, p := range f.envProfiles {
			s.EnvProfiles = append(s.EnvProfiles, spec.EnvProfile(p))
		}
	}
}

// count is the number of tasks, in whichever words it was given. nil: in none.
func (f *specFlags) count() (*int, error) {
	if f.given("nnodes") && f.nnodes != "1" && f.nnodes != "1:1" {
		return nil, fmt.Errorf("--nnodes %s: a run from this command is on this machine alone; several hosts come later. Give --nnodes 1", f.nnodes)
	}
	var n *int
	if f.given("np") {
		n = &f.np
	}
	if f.given("nproc-per-node") {
		m, err := parseNProc(f.nprocPerNode, here())
		if err != nil {
			return nil, err
		}
		if n != nil && *n != m {
			return nil, fmt.Errorf("-n %d and --nproc-per-node %s contradict each other; give one of them", *n, f.nprocPerNode)
		}
		n = &m
	}
	slots, err := f.slots()
	switch {
	case err != nil:
		return nil, err
	case slots == 0:
		return n, nil
	case n == nil:
		return &slots, nil
	case *n > slots:
		return nil, fmt.Errorf("%d tasks need %d slots, and -H or --hostfile gives this machine %d; write -H localhost:%d", *n, *n, slots, *n)
	}
	return n, nil
}

func (f *specFlags) slots() (int, error) {
	switch {
	case f.given("host") && f.given("hostfile"):
		return 0, fmt.Errorf("-H and --hostfile both say which hosts there are; give one of them")
	case f.given("host"):
		hosts, err := parseHosts(f.hosts)
		if err != nil {
			return 0, err
		}
		return slotsHere("-H "+f.hosts, hosts)
	case f.given("hostfile"):
		file, err := os.Open(f.hostfile)
		if err != nil {
			return 0, fmt.Errorf("--hostfile: %w", err)
		}
		defer file.Close()
		hosts, err := parseHostfile(file)
		if err != nil {
			return 0, fmt.Errorf("--hostfile %s: %w", f.hostfile, err)
		}
		return slotsHere("--hostfile "+f.hostfile, hosts)
	}
	return 0, nil
}

// flagOfField names the flag for a field of the spec.
var flagOfField = map[string]string{
	"name":                            "--name",
	"dir":                             "--dir",
	"rpc_layer":                       "--rpc-layer",
	"env_profiles":                    "--env-profile",
	"on_failure":                      "--on-failure",
	"auto_restart":                    "--auto-restart",
	"max_restarts":                    "--max-restarts",
	"restart_scope":                   "--restart-scope",
	"dependence_on_chief":             "--dependence-on-chief",
	"chief_grace":                     "--chief-grace",
	"timeout":                         "--timeout",
	"max_run_time":                    "--max-run-time",
	"placement_timeout":               "--placement-timeout",
	"stop.signal":                     "--stop-signal",
	"stop.grace":                      "--stop-grace",
	"stop_together.grace":             "--stop-together-grace",
	"stop_together.clean_errors":      "--clean-errors",
	"stop_together.ignore_live_tasks": "--ignore-live-tasks",
	"closures.queue_size":             "--closures-queue-size",
	"closures.transient_failures":     "--closures-transient-failures",
	"logs.dir":                        "--log-dir",
	"logs.redirects":                  "--redirects",
	"logs.tee":                        "--tee",
	"logs.local_ranks_filter":         "--local-ranks-filter",
	"logs.prefix":                     "--log-prefix",
	"logs.filter":                     "--filter",
	"devices":                         "--devices",
	"cpus":                            "--cpus",
	"return_output":                   "--return-output",
	"barriers":                        "--barriers",
	"on_disconnect":                   "--on-disconnect",
	"on_disconnect.stop_after":        "--on-disconnect",
}

// inFlags names the flag in a problem with what a flag gave: that is what whoever
// wrote the command line can change. without says that there is no file.
func (f *specFlags) inFlags(p spec.Problem, without bool) spec.Problem {
	field, _, _ := strings.Cut(p.Path, "[") // of a list the whole was given
	if flag, ok := flagOfField[field]; ok && f.given(strings.TrimPrefix(flag, "--")) {
		p.Path, p.Line = flag, 0
	}
	switch {
	case !without:
	case strings.HasPrefix(p.Path, "tasks") && strings.HasSuffix(p.Path, ".count") && f.given("np"):
		p.Path, p.Remedy = "-n", "give 1 or more"
	case strings.HasPrefix(p.Path, "tasks") && strings.HasSuffix(p.Path, ".count") && f.given("nproc-per-node"):
		p.Path, p.Remedy = "--nproc-per-node", "give 1 or more"
	case strings.HasPrefix(p.Path, "tasks") && f.given("task"):
		p.Path = "--task, " + p.Path
	}
	return p
}
