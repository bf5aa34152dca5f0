package spec

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Task is a cluster member, as defined by the spec and its overrides. It does not share slices or
// maps with the spec.
type Task struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
	// Rank is the position in the spec, from 0. Tasks added during the run follow the spec's
	// tasks.
	Rank int `json:"rank"`
	// Address is the task's address in the spec, as written; see [SplitAddress]. It is empty if any
	// host may take the task.
	Address string `json:"address,omitempty"`
	// Command is the whole argv, including args.
	Command []string `json:"command"`
	// Dir is the working directory, or empty for the host worker's.
	Dir string `json:"dir,omitempty"`
	// Env is the task's environment in the spec, which overrides the host's.
	Env Env `json:"env,omitempty"`
	// Signed is the signed request that created the task, or nil.
	Signed *StartTaskRequest `json:"signed,omitempty"`
}

// Name returns the task's name: "worker-3".
func (t Task) Name() string { return TaskName(t.Type, t.Index) }

// TaskName returns the name of the task with that type and index.
func TaskName(typ string, index int) string { return typ + "-" + strconv.Itoa(index) }

// ParseTaskName splits a name such as "worker-3". It is the inverse of [TaskName]. It refuses
// invalid types and other spellings of the index.
func ParseTaskName(name string) (typ string, index int, err error) {
	i := strings.LastIndexByte(name, '-')
	if i > 0 {
		if n, err := strconv.Atoi(name[i+1:]); err == nil && n >= 0 && TaskName(name[:i], n) == name && validType(name[:i]) {
			return name[:i], n, nil
		}
	}
	return "", 0, valueError{Quote(name) + " is not a task name", "write its type and index, such as worker-3"}
}

// TaskList expands a validated spec's groups into tasks, in rank order. A spec that is not
// validated may contain any number of tasks.
func (s *RunSpec) TaskList() []Task {
	var tasks []Task
	for _, g := range s.Tasks {
		for i := range g.Size() {
			t := s.taskOf(g, i)
			t.Rank = len(tasks)
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// Task returns the task with that name, without expanding all tasks.
func (s *RunSpec) Task(name string) (Task, bool) {
	typ, index, err := ParseTaskName(name)
	if err != nil {
		return Task{}, false
	}
	rank := 0
	for _, g := range s.Tasks {
		if g.Type == typ && index < g.Size() {
			t := s.taskOf(g, index)
			t.Rank = rank + index
			return t, true
		}
		rank += g.Size()
	}
	return Task{}, false
}

// Size returns the group's number of tasks.
func (g TaskGroup) Size() int {
	switch {
	case len(g.Addresses) > 0:
		return len(g.Addresses)
	case g.Count != nil:
		return *g.Count
	default:
		return 1
	}
}

func (s *RunSpec) taskOf(g TaskGroup, index int) Task {
	o := g.Overrides[strconv.Itoa(index)]
	t := Task{Type: g.Type, Index: index, Dir: cmp.Or(o.Dir, g.Dir, s.Dir)}
	if index < len(g.Addresses) {
		t.Address = g.Addresses[index]
	}
	command, args := s.Command, g.Args
	if len(g.Command) > 0 {
		command = g.Command
	}
	if len(o.Command) > 0 {
		command = o.Command
	}
	if o.Args != nil {
		args = o.Args
	}
	t.Command = append(append([]string{}, command...), args...)
	t.Env = mergeEnv(s.Env, g.Env, o.Env)
	return t
}

// AddedTask returns the task that a valid [StartTaskRequest] describes, which is either not in the
// spec or has a changed command. If the type is in the spec, it provides the command, args,
// directory and environment even if the index exceeds the type's count. The caller sets the rank.
// The error names the missing part.
func (s *RunSpec) AddedTask(r StartTaskRequest) (Task, error) {
	typ, index, err := ParseTaskName(r.Task)
	if err != nil {
		return Task{}, err
	}
	g := TaskGroup{Type: typ}
	for _, known := range s.Tasks {
		if known.Type == typ {
			g = known
			break
		}
	}
	if g.Overrides == nil {
		g.Overrides = map[string]Override{}
	}
	g.Overrides = maps.Clone(g.Overrides)
	o := g.Overrides[strconv.Itoa(index)]
	if len(r.Command) > 0 {
		// A new command is not combined with the default args.
		o.Command, o.Args = r.Command, []string{}
	}
	if r.Args != nil {
		o.Args = r.Args
	}
	if r.Dir != "" {
		o.Dir = r.Dir
	}
	o.Env = mergeEnv(o.Env, r.Env)
	g.Overrides[strconv.Itoa(index)] = o
	t := s.taskOf(g, index)
	if r.Signature != nil {
		t.Signed = &r
	}
	if len(t.Command) == 0 {
		return Task{}, fmt.Errorf("%s: type %s is not in the spec, and the run has no command; add one", r.Task, typ)
	}
	return t, nil
}
