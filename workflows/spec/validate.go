package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// MaxTasks bounds the tasks of a run.
const MaxTasks = 1000

// Validate holds the spec against every rule that does not need a host: what
// a file system, a port or an installed program would say is found out where
// the tasks are placed. The error is an [*InvalidSpecError] with all problems.
func (s *RunSpec) Validate() error {
	c := &checker{}
	c.checkSpec(s)
	return c.specError()
}

func (c *checker) checkSpec(s *RunSpec) {
	if s.Name != "" && !nameRegexp().MatchString(s.Name) {
		c.add("name", Quote(s.Name)+" is no name", `use up to 100 letters, digits, ".", "-" and "_", without a dot in front`)
	}
	c.checkCommand("command", s.Command)
	c.checkDir("dir", s.Dir)
	c.checkText("rpc_layer", s.RPCLayer)
	c.checkEnv("env", s.Env)
	c.checkTasks(s)
	c.checkEnding(s)
	c.checkRestarts(s)
	c.checkBarriers(s)
	c.checkStop("stop", s.Stop)
	c.checkTogether(s.StopTogether)
	c.checkDisconnect(s.OnDisconnect)
	c.checkClosures(s.Closures)
	c.checkLogs(s)
	c.checkResources("devices", s.Devices, anyDevice)
	c.checkResources("cpus", s.CPUs, numbersOnly)
	for i, p := range s.EnvProfiles {
		checkOneOf(c, indexPath("env_profiles", i), p, envProfiles)
	}
	c.checkSize(s)
}

// checkEnding looks at the rules by which the run ends.
func (c *checker) checkEnding(s *RunSpec) {
	checkOneOf(c, "on_failure", s.OnFailure, onFailures)
	c.checkDuration("chief_grace", s.ChiefGrace, orZero)
	c.checkDuration("max_run_time", s.MaxRunTime, positive)
	c.checkDuration("timeout", s.Timeout, orZero)
	c.checkDuration("placement_timeout", s.PlacementTimeout, positive)
}

func (c *checker) checkRestarts(s *RunSpec) {
	checkOneOf(c, "restart_scope", s.RestartScope, restartScopes)
	switch n := s.MaxRestarts; {
	case n == nil:
	case *n < 0:
		c.add("max_restarts", fmt.Sprintf("must be at least 0, is %d", *n), "leave it out for no limit")
	case *n > 0 && !s.AutoRestart && s.RestartScope != RestartScopeGroup:
		c.add("max_restarts", "has no effect without auto_restart", "add auto_restart: true")
	}
}

func (c *checker) checkStop(path string, s Stop) {
	if s.Signal != "" {
		c.checkSignal(path+".signal", s.Signal)
	}
	c.checkDuration(path+".grace", s.Grace, orZero)
}

func (c *checker) checkTogether(s StopTogether) {
	c.checkDuration("stop_together.grace", s.Grace, orZero)
	for i, kind := range s.CleanErrors {
		p := indexPath("stop_together.clean_errors", i)
		if kind == "" {
			c.add(p, "is empty, and names no kind of error", "write a kind, such as StopIteration, or leave it out")
		}
		c.checkText(p, kind)
	}
}

func (c *checker) checkLogs(s *RunSpec) {
	c.checkDir("logs.dir", s.Logs.Dir)
	n := s.total()
	if c.isMalformed("tasks") {
		n = 0 // without a sound list of tasks there is nothing to compare with
	}
	c.checkMask("logs.redirects", s.Logs.Redirects, "rank", "the run", n)
	c.checkMask("logs.tee", s.Logs.Tee, "rank", "the run", n)
	for i, r := range s.Logs.LocalRanksFilter {
		switch p := indexPath("logs.local_ranks_filter", i); {
		case r < 0 || r >= MaxTasks:
			c.add(p, fmt.Sprintf("%d is no local rank", r), fmt.Sprintf("local ranks go from 0 to %d", MaxTasks-1))
		case n > 0 && r >= n:
			c.add(p, fmt.Sprintf("names local rank %d, but the run has %d tasks", r, n), fmt.Sprintf("they go from 0 to %d", n-1))
		}
	}
	c.checkFilter(s)
	c.checkTexts("logs.duplicate_stdout_filters", s.Logs.DuplicateStdoutFilters)
	c.checkTexts("logs.duplicate_stderr_filters", s.Logs.DuplicateStderrFilters)
	c.checkText("logs.prefix", s.Logs.Prefix)
	_, err := ParsePrefix(s.Logs.Prefix)
	c.addError("logs.prefix", err)
}

// checkMask refuses a mask that names a rank, or in a group an index, that none
// of the tasks has: torch drops it silently, and the output is not
// where it was wanted. Of no tasks nothing is known.
func (c *checker) checkMask(path, text, number, owner string, tasks int) {
	if text == "" {
		return
	}
	m, err := ParseStd(text)
	if err != nil {
		c.addError(path, err)
		return
	}
	if tasks > 0 && m.highest() >= tasks {
		c.add(path, fmt.Sprintf("names %s %d, but %s has %d tasks", number, m.highest(), owner, tasks), fmt.Sprintf("they go from 0 to %d", tasks-1))
	}
}

// checkFilter refuses what names neither a task of the spec nor a type.
func (c *checker) checkFilter(s *RunSpec) {
	for i, name := range s.Logs.Filter {
		if c.isMalformed("tasks") || s.hasTask(name) || slices.ContainsFunc(s.Tasks, func(g TaskGroup) bool { return g.Type == name }) {
			continue
		}
		c.add(indexPath("logs.filter", i), Quote(name)+" is neither a task nor a type of the run", "write a task like worker-0, or a type like worker")
	}
}

func (s *RunSpec) hasTask(name string) bool {
	_, ok := s.Task(name)
	return ok
}

// checkTexts refuses filters that would let every line through.
func (c *checker) checkTexts(path string, texts []string) {
	for i, t := range texts {
		if t == "" {
			c.add(indexPath(path, i), "is empty, and every line contains that", "write a text, or leave it out")
		}
		c.checkText(indexPath(path, i), t)
	}
}

func (c *checker) checkSignal(path, name string) {
	_, err := SignalNumber(name)
	c.addError(path, err)
}

// lowest says which durations are too short.
type lowest int

const (
	orZero lowest = iota
	positive
)

func (c *checker) checkDuration(path string, d *Duration, from lowest) {
	switch {
	case d == nil:
	case *d < 0:
		c.add(path, fmt.Sprintf("must not be negative, is %s", d), durationRemedy)
	case *d == 0 && from == positive:
		c.add(path, "must be more than 0", durationRemedy+", or leave it out")
	case *d > MaxDuration:
		c.add(path, fmt.Sprintf("must be at most ten years (87600h), is %s", d), "write a shorter one")
	}
}

// checkSize bounds what a Temporal server has to store. A document has been
// measured before, but a program makes specs without one, and the aliases of a
// YAML document may expand to anything.
func (c *checker) checkSize(s *RunSpec) {
	data, err := json.Marshal(s)
	if err != nil {
		c.add("", "cannot be written as JSON: "+err.Error(), "")
		return
	}
	if len(data) >= MaxSpecBytes {
		c.add("", fmt.Sprintf("the spec has %d bytes as JSON; a run spec has less than %d", len(data), MaxSpecBytes), "pass large data in files")
	}
}

// checkOneOf checks a value of an enumeration; an empty one is not given.
func checkOneOf[T ~string](c *checker, path string, value T, values []T) {
	if value == "" && !strings.HasSuffix(path, "]") || slices.Contains(values, value) {
		return
	}
	all := names(values)
	remedy := "write " + orList(all)
	if near := Nearest(string(value), all); near != "" {
		remedy = "did you mean " + near + "?"
	}
	c.add(path, fmt.Sprintf("%s is not %s", Quote(string(value)), orList(all)), remedy)
}

var (
	onFailures    = []OnFailure{OnFailureStop, OnFailureContinue}
	restartScopes = []RestartScope{RestartScopeTask, RestartScopeGroup}
	barrierWays   = []Barriers{BarriersServer, BarriersLocal}
	envProfiles   = []EnvProfile{EnvTensorFlow, EnvTorch, EnvJAX}
)
