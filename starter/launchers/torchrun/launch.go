package torchrun

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// A Launch is a translated torchrun command line.
type Launch struct {
	// Flags and Command are arguments for `clusterrun run`.
	Flags, Command []string
	// Signals lists the names of the signals that stop the run. It is empty if they were not
	// given.
	Signals string
	// Meeting describes how other hosts' agents join the run. It is nil without agents.
	Meeting *Meeting
	// Notes are messages for the user.
	Notes []string
	// Help reports whether only help was requested.
	Help bool
}

// A Machine describes this machine to [Translate].
type Machine struct {
	// Environ is the command's environment, and Inherited the part that processes inherit by
	// default.
	Environ, Inherited []string
	// LookPath finds a program, like [os/exec.LookPath].
	LookPath func(name string) (string, error)
	// Processes converts a value of --nproc-per-node to a number.
	Processes func(text string) (int, error)
}

// Translate translates torchrun's arguments.
func Translate(args []string, m Machine) (*Launch, error) {
	g, err := parse(args, m.getenv)
	if err != nil {
		return nil, err
	}
	if g.help {
		return &Launch{Help: true}, nil
	}
	if v, ok := g.values["print-completion"]; ok {
		return nil, fmt.Errorf("%s: `clusterrun completion %s` prints a shell script that completes all commands", v.from, v.text)
	}
	t := &translation{given: g, machine: m, launch: &Launch{}}
	for _, step := range []func() error{t.command, t.check, t.hosts, t.tasks, t.logs, t.endings, t.devices, t.addresses, t.environment} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	t.unneeded()
	return t.launch, nil
}

func (m Machine) getenv(name string) string {
	for _, kv := range slices.Backward(m.Environ) {
		if n, value, _ := strings.Cut(kv, "="); n == name {
			return value
		}
	}
	return ""
}

// translation holds a translation's state.
type translation struct {
	*given
	machine   Machine
	launch    *Launch
	processes int
	// useless lists flags that other flags make ineffective.
	useless []string
}

func (t *translation) add(flags ...string) { t.launch.Flags = append(t.launch.Flags, flags...) }

func (t *translation) setenv(name, value string) { t.add("--env", name+"="+value) }

func (t *translation) note(format string, args ...any) {
	t.launch.Notes = append(t.launch.Notes, fmt.Sprintf(format, args...))
}

// text returns a flag's value. If the flag was not given, it returns otherwise.
func (t *translation) text(name, otherwise string) string {
	if v, ok := t.values[name]; ok {
		return v.text
	}
	return otherwise
}

func (t *translation) has(name string) bool {
	_, ok := t.values[name]
	return ok
}

// number returns a flag's value, which must be a non-negative number.
func (t *translation) number(name string, otherwise int) (int, error) {
	v, ok := t.values[name]
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(v.text))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: use a whole number, 0 or more", v.from)
	}
	return n, nil
}

// runPath is the program for --run-path. If torch is installed, it records an exception in the
// script, like torchrun.
const runPath = `import runpy, sys
try:
    from torch.distributed.elastic.multiprocessing.errors import record
except ImportError:
    record = lambda f: f
sys.argv = sys.argv[1:]
record(runpy.run_path)(sys.argv[0], run_name="__main__")`

// command sets each process's command.
func (t *translation) command() error {
	script := t.given.command
	switch {
	case len(script) == 0:
		return errors.New("the script is missing; write torchrun [FLAG...] SCRIPT [ARGUMENT...]")
	case t.has("no-python") && !t.has("run-path"):
		if t.has("module") {
			return fmt.Errorf("%s and %s contradict each other: a module needs python; omit one of them", t.values["no-python"].from, t.values["module"].from)
		}
		t.launch.Command = script
		return nil
	}
	python, err := t.python()
	if err != nil {
		return err
	}
	command := []string{python, "-u"}
	switch {
	case t.has("run-path"):
		command = append(command, "-c", runPath)
	case t.has("module"):
		command = append(command, "-m")
	}
	t.launch.Command = append(command, script...)
	return nil
}

// python returns the script's interpreter. torchrun uses its own.
func (t *translation) python() (string, error) {
	if own := t.machine.getenv("PYTHON_EXEC"); own != "" {
		return own, nil
	}
	for _, name := range []string{"python3", "python"} {
		if path, err := t.machine.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no python3 or python in PATH; set PYTHON_EXEC to one, or use --no-python for a program that does not need it")
}

// choices maps flags to their allowed values.
var choices = map[string][]string{
	"rdzv-backend": {"static", "c10d", "etcd", "etcd-v2"},
	"start-method": {"spawn", "fork", "forkserver"},
	"numa-binding": {"exclusive", "node", "socket", "core-complex"},
	"logs-specs":   {"default"},
}

// check refuses torchrun's plug-ins, and values that torchrun would also refuse.
func (t *translation) check() error {
	for _, f := range flags {
		v, ok := t.values[f.name]
		if words := choices[f.name]; ok && words != nil && !slices.Contains(words, v.text) {
			plugin := ""
			if f.name == "rdzv-backend" || f.name == "logs-specs" {
				plugin = "; torchrun plug-ins are not loaded"
			}
			return fmt.Errorf("%s: use %s, or omit it%s", v.from, strings.Join(words, ", "), plugin)
		}
	}
	if v, ok := t.values["monitor-interval"]; ok {
		if _, err := strconv.ParseFloat(v.text, 64); err != nil {
			return fmt.Errorf("%s: use a number of seconds", v.from)
		}
	}
	if v, ok := t.values["rdzv-conf"]; ok && v.text != "" {
		for pair := range strings.SplitSeq(v.text, ",") {
			if key, _, found := strings.Cut(pair, "="); !found || strings.TrimSpace(key) == "" {
				return fmt.Errorf("%s: write KEY=VALUE,KEY=VALUE", v.from)
			}
		}
	}
	return nil
}

// tasks sets the number of processes, and their role.
func (t *translation) tasks() error {
	v, ok := t.values["nproc-per-node"]
	if !ok {
		v = value{"1", "--nproc-per-node 1"}
	}
	n, err := t.machine.Processes(v.text)
	switch {
	case err != nil:
		return err
	case n < 1:
		return fmt.Errorf("%s: must be at least 1", v.from)
	}
	t.processes = n
	if m := t.launch.Meeting; m != nil {
		t.add("--set", "hosts.per_host="+strconv.Itoa(n), "--hosts", m.Hosts())
		n *= m.Most
	}
	t.add("--task", fmt.Sprintf("%s=%d", t.taskType(), n), "--set", "env_profiles=[torch]")
	if role := t.role(); role != t.taskType() {
		t.setenv("ROLE_NAME", role)
	}
	return nil
}

func (t *translation) role() string { return t.text("role", "default") }

// plainRole matches a role that is a valid task type.
var plainRole = lazyregexp.New(`^[a-z][a-z0-9_]{0,39}$`)

// taskType returns the role as a task type if possible. It cannot be chief, because a run ends
// with its chief.
func (t *translation) taskType() string {
	if role := t.role(); plainRole().MatchString(role) && role != "chief" {
		return role
	}
	return "default"
}

// endings sets how failures are handled, and how processes are stopped.
func (t *translation) endings() error {
	restarts, err := t.number("max-restarts", 0)
	if err != nil {
		return err
	}
	if m := t.launch.Meeting; restarts > 0 || m != nil && m.Least < m.Most {
		t.add("--restart-scope", "group")
	}
	t.add("--max-restarts", strconv.Itoa(restarts))
	const variable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
	if text := t.machine.getenv(variable); text != "" && !t.has("shutdown-timeout") {
		t.values["shutdown-timeout"] = value{text, variable + "=" + text}
	}
	if t.has("shutdown-timeout") {
		seconds, err := t.number("shutdown-timeout", 0)
		if err != nil {
			return err
		}
		t.add("--grace", strconv.Itoa(seconds)+"s")
	}
	for _, name := range []string{"timeout", "silence", "on-silence"} {
		if t.has(name) {
			t.add("--"+name, t.text(name, ""))
		}
	}
	t.launch.Signals = t.text("signals-to-handle", "")
	return nil
}

// devices sets each process's CPUs and GPUs.
func (t *translation) devices() error {
	if v, ok := t.values["numa-binding"]; ok {
		t.add("--cpus", "auto")
		if v.text != "exclusive" {
			t.note("%s: each process is bound to its own CPUs, as with --numa-binding exclusive", v.from)
		}
	}
	if t.has("virtual-local-rank") {
		t.add("--devices", "auto")
		t.setenv("LOCAL_RANK", "0")
	}
	return nil
}

// unneeded reports the given flags that are ignored.
func (t *translation) unneeded() {
	var list []string
	reasons := map[string][]string{}
	for _, f := range flags {
		reason := f.unneeded
		switch {
		case slices.Contains(t.useless, f.name) && strings.HasPrefix(f.name, "rdzv-"):
			reason = "the run itself knows its participants"
		case slices.Contains(t.useless, f.name):
			reason = "the backend, or another flag, determines where the processes meet"
		}
		if !t.has(f.name) || reason == "" {
			continue
		}
		if reasons[reason] == nil {
			list = append(list, reason)
		}
		name, _, _ := strings.Cut(t.values[f.name].from, " ")
		name, _, _ = strings.Cut(name, "=")
		reasons[reason] = append(reasons[reason], name)
	}
	for i, reason := range list {
		list[i] = fmt.Sprintf("%s (%s)", strings.Join(reasons[reason], ", "), reason)
	}
	if len(list) > 0 {
		t.note("not needed: %s", strings.Join(list, "; "))
	}
}
