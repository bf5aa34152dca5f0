package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// MaxTasks limits a run's tasks.
const MaxTasks = 10_000

// MaxHosts limits a run's hosts, and a queue's. Each needs an open activity or workflow, and two
// for a moment if it rejoins, while a server allows 2,000 per workflow.
const MaxHosts = 1900

// Validate checks the spec against all rules that do not depend on a host. File systems, ports
// and installed programs are checked when the tasks are placed. The error is an
// [*InvalidSpecError] with all problems.
func (s *RunSpec) Validate() error {
	c := &checker{}
	checkSpec(c, s)
	return c.specError()
}

func checkSpec(c *checker, s *RunSpec) {
	checkFields(c, "", reflect.ValueOf(s).Elem())
	checkTasks(c, s)
	checkDirs(c, s)
	checkRestarts(c, s)
	checkSilence(c, s)
	checkAfter(c, s)
	checkMPI(c, s)
	checkBarriers(c, s)
	checkHosts(c, s)
	checkElastic(c, s)
	checkGPUs(c, "", s.Devices, s.GPUsPerTask)
	checkGPUShares(c, s)
	checkLogs(c, s)
	checkSize(c, s)
}

// section is a part of a spec that can check itself, given its path.
type section interface {
	check(c *checker, path string)
}

// checkFields checks each field of a struct against its entry in the table.
func checkFields(c *checker, path string, v reflect.Value) {
	for i := range v.NumField() {
		name := jsonName(v.Type().Field(i))
		checkField(c, fieldPath(path, name), fieldKey(v.Type(), name), v.Field(i))
	}
}

func checkField(c *checker, path, key string, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		if !v.IsNil() {
			checkField(c, path, key, v.Elem())
		}
		return
	}
	if s, ok := v.Interface().(section); ok {
		s.check(c, path)
		return
	}
	f := fieldOf(key)
	if f.syntax.check != nil {
		f.syntax.check(c, path, v.Interface())
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		checkFields(c, path, v)
	case reflect.Slice:
		for i := range v.Len() {
			checkField(c, indexPath(path, i), key+"[]", v.Index(i))
		}
	case reflect.Map:
		names := v.MapKeys()
		slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, name := range names {
			checkField(c, fieldPath(path, name.String()), key+".*", v.MapIndex(name))
		}
	case reflect.String:
		if f.enum != nil {
			checkOneOf(c, path, v.String(), f.enum)
		} else {
			checkText(c, path, v.String())
		}
	case reflect.Int:
		checkNumber(c, path, int(v.Int()), f)
	case reflect.Int64:
		checkDuration(c, path, new(Duration(v.Int())), f.from)
	}
}

func checkSilence(c *checker, s *RunSpec) {
	if s.Silence.IsWatched() || s.Silence == "" && s.total() > 1 {
		return
	}
	if s.OnSilence != "" {
		c.add("on_silence", "has no effect without silence", "add, for example, silence: 10m")
	} else if s.SilenceIgnoresCPU {
		c.add("silence_ignores_cpu", "has no effect without silence", "add, for example, silence: 10m")
	}
}

func checkRestarts(c *checker, s *RunSpec) {
	if n := s.MaxRestarts; n != nil && *n > 0 && !s.AutoRestart && s.RestartScope != RestartScopeGroup && !s.requeuesWithin() {
		c.add("max_restarts", "has no effect without auto_restart", "add auto_restart: true")
	}
}

// checkMPI refuses a spec if a rank would wait for ranks that do not wait for it.
func checkMPI(c *checker, s *RunSpec) {
	if slices.Contains(s.EnvProfiles, EnvMPI) && s.RestartsTasks() {
		c.add("env_profiles", "includes mpi, but a rank that restarts alone cannot rejoin the other ranks", "add restart_scope: group, or omit auto_restart")
	}
}

func checkErrorKind(c *checker, path, kind string) {
	if kind == "" {
		c.add(path, "is empty", "name a kind, such as StopIteration, or omit it")
	}
	checkText(c, path, kind)
}

func checkLogs(c *checker, s *RunSpec) {
	n := s.total()
	if c.isMalformed("tasks") {
		n = 0 // hosts cannot be compared with invalid tasks
	}
	checkMask(c, "logs.redirects", s.Logs.Redirects, "rank", "the run", n)
	checkMask(c, "logs.tee", s.Logs.Tee, "rank", "the run", n)
	for i, r := range s.Logs.LocalRanksFilter {
		switch p := indexPath("logs.local_ranks_filter", i); {
		case r < 0 || r >= MaxTasks:
			c.add(p, fmt.Sprintf("there is no local rank %d", r), fmt.Sprintf("local ranks are 0 to %d", MaxTasks-1))
		case n > 0 && r >= n:
			c.add(p, fmt.Sprintf("names local rank %d, but the run has %s", r, units.Count(n, "task", "tasks")), fmt.Sprintf("they are 0 to %d", n-1))
		}
	}
	checkFilter(c, s)
}

func checkPrefix(c *checker, path, text string) {
	checkText(c, path, text)
	_, err := ParsePrefix(&text)
	c.addError(path, err)
}

// checkMask refuses a mask for a rank (in a group, an index) that does not exist. torch silently
// drops such a mask, and the output goes elsewhere. If there are no tasks, every mask is accepted.
func checkMask(c *checker, path, text, number, owner string, tasks int) {
	if text == "" {
		return
	}
	m, err := ParseStd(text)
	if err != nil {
		c.addError(path, err)
		return
	}
	if tasks > 0 && m.highest() >= tasks {
		c.add(path, fmt.Sprintf("names %s %d, but %s has %s", number, m.highest(), owner, units.Count(tasks, "task", "tasks")), fmt.Sprintf("they are 0 to %d", tasks-1))
	}
}

// checkFilter refuses a name that is neither a task nor a type of the spec.
func checkFilter(c *checker, s *RunSpec) {
	for i, name := range s.Logs.Filter {
		if c.isMalformed("tasks") || s.hasTask(name) || slices.ContainsFunc(s.Tasks, func(g TaskGroup) bool { return g.Type == name }) {
			continue
		}
		c.add(indexPath("logs.filter", i), Quote(name)+" is neither a task nor a type of the run", "name a task such as worker-0, or a type such as worker")
	}
}

func (s *RunSpec) hasTask(name string) bool {
	_, ok := s.Task(name)
	return ok
}

// checkLineFilter refuses a filter that would match every line.
func checkLineFilter(c *checker, path, text string) {
	if text == "" {
		c.add(path, "is empty, and matches every line", "write a string, or omit it")
	}
	checkText(c, path, text)
}

func checkSignal(c *checker, path, name string) {
	if name != "" {
		_, err := SignalNumber(name)
		c.addError(path, err)
	}
}

func checkNumber(c *checker, path string, n int, f field) {
	switch {
	case f.least == nil || n >= *f.least && (f.most == nil || n <= *f.most):
	case f.most == nil:
		c.add(path, fmt.Sprintf("must be at least %d, not %d", *f.least, n), f.bounds)
	default:
		c.add(path, fmt.Sprintf("must be from %d to %d, not %d", *f.least, *f.most, n), f.bounds)
	}
}

// lowest is the kind of lower limit on a duration.
type lowest int

const (
	orZero lowest = iota
	positive
)

func checkDuration(c *checker, path string, d *Duration, from lowest) {
	switch {
	case d == nil:
	case *d < 0:
		c.add(path, fmt.Sprintf("must be 0s or more, not %s", d), durationRemedy)
	case *d == 0 && from == positive:
		c.add(path, "must be more than 0", durationRemedy+", or omit it")
	case *d > MaxDuration:
		c.add(path, fmt.Sprintf("must be at most ten years (87600h), not %s", d), "use a shorter time")
	}
}

// checkSize limits the spec that a Temporal server must store. A document's size is checked
// earlier, but programs build specs without a document, and aliases in YAML may expand without
// limit.
func checkSize(c *checker, s *RunSpec) {
	data, err := json.Marshal(s)
	if err != nil {
		c.add("", "cannot be written as JSON: "+err.Error(), "")
		return
	}
	if len(data) >= MaxSpecBytes {
		c.add("", fmt.Sprintf("the spec takes %d bytes as JSON; it must be smaller than %d bytes", len(data), MaxSpecBytes), "put large data into files")
	}
}

// checkOneOf checks an enumeration's value. An empty value means "not given", except in a list.
func checkOneOf(c *checker, path, value string, values []string) {
	if value == "" && !strings.HasSuffix(path, "]") || slices.Contains(values, value) {
		return
	}
	remedy := "write " + orList(values)
	if near := Nearest(value, values); near != "" {
		remedy = "did you mean " + near + "?"
	}
	c.add(path, Quote(value)+" is not "+orList(values), remedy)
}

var (
	onFulls       = []OnFull{OnFullFail, OnFullDrop}
	onOOMs        = []OnOOM{OnOOMReport, OnOOMFail}
	onSilences    = []OnSilence{OnSilenceReport, OnSilenceStop}
	onFailures    = []OnFailure{OnFailureStop, OnFailureContinue}
	restartScopes = []RestartScope{RestartScopeTask, RestartScopeGroup}
	barrierWays   = []Barriers{BarriersServer, BarriersLocal}
	envProfiles   = []EnvProfile{EnvTensorFlow, EnvTorch, EnvJAX} // by default
)
