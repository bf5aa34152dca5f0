package mpirun

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Launch is the translated command line.
type Launch struct {
	Args []string
	// Notes are messages for the user.
	Notes []string
}

// A Command describes the flags of the clusterrun command to whose arguments the flags belong.
type Command struct {
	// Has reports whether the command has a flag of that name, without dashes. TakesValue
	// reports whether the next argument is the value of a flag, as it was typed.
	Has, TakesValue func(flag string) bool
	// Fleet reports whether hosts come from a queue instead of ssh.
	Fleet bool
}

// translation is the state of a translation.
type translation struct {
	Launch
	fleet bool
	// tasks and perHost are the values of the flags, or empty.
	tasks, perHost string
	// names are the hosts of --nodelist. counted reports whether the number of hosts is given.
	names    []string
	counted  bool
	bind     bool // each task gets CPUs of its own
	unneeded []string
}

// Translate replaces flags of other launchers in front of a program by flags of run. It leaves
// unknown flags unchanged.
func Translate(args []string, c Command) (*Launch, error) {
	t := &translation{fleet: c.Fleet}
	for len(args) > 0 {
		arg := args[0]
		if arg == "--" || arg == "-" || !strings.HasPrefix(arg, "-") {
			break
		}
		rest, err := t.word(args, c)
		if err != nil {
			return nil, err
		}
		args = rest
	}
	t.placeOnNodes()
	t.bound()
	if len(t.unneeded) > 0 {
		t.note("ignored: %s", strings.Join(t.unneeded, "; "))
	}
	t.Args = append(t.Args, args...)
	return &t.Launch, nil
}

// word reads the flag at the start of args, and returns the arguments after it.
func (t *translation) word(args []string, c Command) (rest []string, err error) {
	name, text, given := strings.Cut(args[0], "=")
	w, known := named(name)
	if !known && len(name) > 2 && name[1] != '-' && c.Has(name[1:]) { // as in mpirun
		return append([]string{"-" + args[0]}, args[1:]...), nil
	}
	if !known && len(name) > 2 && name[1] != '-' { // -N2, and of flags without values -ln4
		if w, known = named(name[:2]); known {
			if text, given = args[0][2:], true; w.values == "" {
				return t.apply(w, name[:2], nil, append([]string{"-" + text}, args[1:]...))
			}
			text, name = strings.TrimPrefix(text, "="), name[:2]
		}
	}
	if !known {
		n := 1
		if !given && len(args) > 1 && c.TakesValue(args[0]) {
			n = 2
		}
		t.remote(args[:n])
		t.Args = append(t.Args, args[:n]...)
		return args[n:], nil
	}
	args = args[1:]
	var values []string
	if given {
		values = []string{text}
	}
	want := len(strings.Fields(w.values))
	if want == 0 && given && w.unneeded == "" {
		return nil, fmt.Errorf("%s takes no value; write %s alone", name, name)
	}
	for len(values) < want {
		if len(args) == 0 || args[0] == "--" {
			return nil, fmt.Errorf("%s: the value is missing; write %s %s", name, name, w.values)
		}
		values, args = append(values, args[0]), args[1:]
	}
	return t.apply(w, name, values, args)
}

// remote records whether the hosts come from a queue, and the values of our own flags that
// matter.
func (t *translation) remote(flag []string) {
	name, value, _ := strings.Cut(flag[0], "=")
	if len(flag) > 1 {
		value = flag[1]
	}
	switch {
	case (name == "--remote" || name == "--plan") && value != "false":
		t.fleet = true
	case name == "--nnodes", name == "--hosts":
		t.counted = true
	case name == "--per-host", name == "--nproc-per-node":
		t.perHost = value
	}
}

// apply applies the meaning of a flag.
func (t *translation) apply(w word, typed string, values, rest []string) ([]string, error) {
	typedAll := strings.Join(append([]string{typed}, values...), " ")
	switch {
	case w.instead != "":
		return nil, fmt.Errorf("%s is a flag of %s that clusterrun does not take; %s", typedAll, strings.ReplaceAll(w.of, ", ", " and "), w.instead)
	case w.unneeded != "":
		t.unneeded = append(t.unneeded, fmt.Sprintf("%s (%s)", typed, w.unneeded))
		return rest, nil
	}
	return rest, w.flags(t, typed, values)
}

func (t *translation) add(flags ...string) { t.Args = append(t.Args, flags...) }

func (t *translation) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// as sets one of our flags to the value.
func as(flag string) func(*translation, string, []string) error {
	return func(t *translation, _ string, values []string) error {
		if flag == "--np" {
			t.tasks = values[0]
		}
		t.add(flag + "=" + values[0])
		return nil
	}
}

// number sets one of our flags to a number, which must be at least 1.
func number(flag string) func(*translation, string, []string) error {
	return func(t *translation, typed string, values []string) error {
		if n, err := strconv.Atoi(values[0]); err != nil || n < 1 {
			return fmt.Errorf("%s %s: give a whole number, 1 or more", typed, values[0])
		}
		t.perHost = values[0]
		t.add(flag, values[0])
		return nil
	}
}

// fixed adds flags.
func fixed(flags ...string) func(*translation, string, []string) error {
	return func(t *translation, _ string, _ []string) error {
		if flags[0] == "--per-host" {
			t.perHost = flags[1]
		}
		t.add(flags...)
		return nil
	}
}

// oneOf returns an error if value is not among the known values.
func oneOf(typed, value string, known ...string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("%s %s: give %s", typed, value, strings.Join(known, ", "))
}
