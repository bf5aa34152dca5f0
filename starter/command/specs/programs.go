package specs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/launchers/mpirun"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// between separates the programs of a run, as in mpirun -np 2 a : -np 1 b.
const between = ":"

// program is one of several programs of a run. Each becomes a task type.
type program struct {
	count   int
	dir     string
	env     variables
	command []string
}

// parsePrograms splits a command line into its first program and the others, which are empty
// for a single program. c describes the flags of other launchers.
func parsePrograms(args []string, c mpirun.Command) (first []string, others []program, notes []string, err error) {
	at := slices.Index(args, between)
	if at < 0 {
		return args, nil, nil, nil
	}
	if first = args[:at]; len(first) == 0 {
		return nil, nil, nil, cli.Usagef("in front of %q the program is missing; write for example -n 2 ./a %s -n 1 ./b", between, between)
	}
	for rest := args[at:]; len(rest) > 0; {
		rest = rest[1:] // the colon
		end := slices.Index(rest, between)
		if end < 0 {
			end = len(rest)
		}
		p, said, err := parseProgram(rest[:end], c)
		if err != nil {
			return nil, nil, nil, err
		}
		others, notes, rest = append(others, p), append(notes, said...), rest[end:]
	}
	return first, others, notes, nil
}

// notSeparated returns a note if a command after -- looks like several.
func notSeparated(args []string) []string {
	for i, arg := range args[:len(args)-1] {
		if next := args[i+1]; arg == between && (strings.HasPrefix(next, "-n") || next == "--np") {
			return []string{fmt.Sprintf("%q and what follows are arguments of %s, since they come after --; to start several programs leave the -- out", between, args[0])}
		}
	}
	return nil
}

func parseProgram(args []string, c mpirun.Command) (p program, notes []string, err error) {
	l, err := mpirun.Translate(args, c)
	if err != nil {
		return p, nil, cli.Usagef("%s", err)
	}
	fs := pflag.NewFlagSet("program", pflag.ContinueOnError)
	fs.SetInterspersed(false)
	fs.VarP(cli.OnceIn(&p.count, 1), "np", "n", "")
	fs.StringVar(&p.dir, "dir", "", "")
	p.env.register(fs)
	switch err := fs.Parse(l.Args); {
	case err != nil:
		text := cli.FlagWords(err)
		if len(l.Args) > 0 && c.Has(strings.TrimLeft(strings.SplitN(l.Args[0], "=", 2)[0], "-")) {
			text += ", of one program among several; put it in front of the first, for the whole run"
		}
		return p, nil, cli.Usagef("after %q: %s; a program may have -n, -x, --env, --secret and --dir of its own", between, text)
	case fs.NArg() == 0:
		return p, nil, cli.Usagef("after %q the program is missing; write for example -n 2 ./a %s -n 1 ./b, and put a program with an argument %q behind --", between, between, between)
	case p.count < 1:
		return p, nil, cli.Usagef("-n %d after %q: give 1 or more", p.count, between)
	}
	p.command = fs.Args()
	return p, l.Notes, nil
}

// applyPrograms adds the tasks of each program. Ranks continue from one program to the next.
func (f *SpecFlags) applyPrograms(s *spec.RunSpec, others []program) (problems []string) {
	for _, name := range []string{"task", "nproc-per-node"} {
		if f.Given(name) {
			problems = append(problems, fmt.Sprintf("--%s and several programs both say how many tasks there are; give each program -n", name))
		}
	}
	f.programs = true
	programs := append([]program{{count: f.np, command: s.Command}}, others...)
	given := map[string]bool{}
	for _, p := range programs {
		typ := typeOf(p.command)
		for n := 2; given[typ]; n++ {
			typ = fmt.Sprintf("%s_%d", typeOf(p.command), n)
		}
		given[typ] = true
		env, wrong := p.env.over(nil, f.warn)
		problems = append(problems, wrong...)
		s.Tasks = append(s.Tasks, spec.TaskGroup{Type: typ, Count: &p.count, Dir: p.dir, Env: env, Command: p.command})
	}
	s.Tasks[0].Command = nil // the run's
	return problems
}

// typeOf returns the task type of a program: its name, if that is a valid type. It is never
// chief, because the end of the chief ends the run.
func typeOf(command []string) string {
	name := strings.ReplaceAll(nameOf(command), "-", "_")
	if _, _, err := spec.ParseTaskName(name + "-0"); err != nil || name == spec.TypeChief {
		return cmp.Or(strings.Trim("p_"+name, "_"), "p")
	}
	return name
}
