package torchrun

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// An UnknownFlagError reports a flag that torchrun does not have.
type UnknownFlagError struct {
	// Name is the flag as typed, without its dashes.
	Name string
	text string
}

func (e *UnknownFlagError) Error() string { return e.text }

// given is a parsed command line.
type given struct {
	values map[string]value // by flag name
	// command is the script and its arguments.
	command []string
	help    bool
}

// value is a flag's value, from the command line or from its variable.
type value struct {
	text string
	// from is the flag or variable that gave the value, for messages: "--nnodes 2" or
	// "PET_NNODES=2".
	from string
}

// parse parses a command line like Python's argparse. Flags may be abbreviated, may contain
// underscores, and precede the script. lookup returns an environment variable.
func parse(args []string, lookup func(string) string) (*given, error) {
	g := &given{values: map[string]value{}}
	for _, f := range flags {
		text := lookup(f.variable())
		if text == "" || f.typed {
			continue
		}
		from := f.variable() + "=" + text
		if f.value == "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return nil, fmt.Errorf("%s: use 1 for --%s, or 0", from, f.name)
			}
			if n == 0 {
				continue
			}
		}
		g.values[f.name] = value{text, from}
	}
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			g.command = args[1:]
			return g, nil
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			g.command = args
			return g, nil
		}
		n, err := g.flag(args)
		if err != nil || g.help {
			return g, err
		}
		args = args[n:]
	}
	return g, nil
}

// flag parses the flag at the start of args, and returns how many arguments it takes.
func (g *given) flag(args []string) (n int, err error) {
	if !strings.HasPrefix(args[0], "--") {
		return g.letters(args)
	}
	name, text, has := strings.Cut(args[0][2:], "=")
	f, err := named(name)
	switch {
	case err != nil:
		return 0, err
	case f.name == "help":
		g.help = true
		return 1, nil
	case f.value == "" && has:
		return 0, fmt.Errorf("--%s does not take a value; write --%s alone", f.name, f.name)
	}
	return g.set(f, "--"+f.name, text, has, args)
}

// letters parses one-letter flags, such as -m, -r3 and -mr 3.
func (g *given) letters(args []string) (n int, err error) {
	letters := args[0][1:]
	for i := range letters {
		letter, rest := letters[i:i+1], letters[i+1:]
		var f flag
		for _, known := range flags {
			if known.short == letter {
				f = known
			}
		}
		switch {
		case letter == "h":
			g.help = true
			return 1, nil
		case f.name == "":
			return 0, &UnknownFlagError{letter, fmt.Sprintf("torchrun has no flag -%s; flags of the script follow its name", letter)}
		case f.value != "":
			return g.set(f, "-"+letter, strings.TrimPrefix(rest, "="), rest != "", args)
		}
		g.values[f.name] = value{"1", "-" + letter}
	}
	return 1, nil
}

var negative = lazyregexp.New(`^-\d+$|^-\d*\.\d+$`)

// set sets a flag's value: the text written with it, or else the next argument.
func (g *given) set(f flag, written, text string, has bool, args []string) (n int, err error) {
	n = 1
	switch {
	case f.value == "":
		g.values[f.name] = value{"1", written}
		return 1, nil
	case has:
	case len(args) < 2, strings.HasPrefix(args[1], "-") && args[1] != "-" && !negative().MatchString(args[1]) && !strings.Contains(args[1], " "):
		return 0, fmt.Errorf("%s: the value is missing; write %s %s", written, written, f.value)
	default:
		text, n = args[1], 2
	}
	g.values[f.name] = value{text, written + " " + text}
	return n, nil
}

// named returns the flag with the given name, which may be abbreviated.
func named(name string) (flag, error) {
	written := name
	name = dashed(name)
	var found []flag
	var names []string
	for _, f := range append([]flag{{name: "help"}}, flags...) {
		if f.name == name {
			return f, nil
		}
		if strings.HasPrefix(f.name, name) && !f.ours {
			found = append(found, f)
		}
		names = append(names, "--"+f.name)
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		hint := "flags of the script follow its name"
		if near := spec.Nearest(name, names); near != "" {
			hint = "did you mean " + near + "?"
		}
		return flag{}, &UnknownFlagError{written, fmt.Sprintf("torchrun has no flag --%s; %s", written, hint)}
	}
	var list []string
	for _, f := range found {
		list = append(list, "--"+f.name)
	}
	return flag{}, fmt.Errorf("--%s is ambiguous: it could be %s; write it in full", written, strings.Join(list, " or "))
}
