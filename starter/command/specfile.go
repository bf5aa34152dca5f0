package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// source is what the positional arguments of run, submit and validate name.
type source struct {
	file    string // of a spec; "-" is stdin; "" is none
	given   []byte // a spec in JSON that is no file; its title is run
	run     string
	command []string
	// others are the programs behind the first, where there are several.
	others []program
	// notes are about words of other launchers among their flags.
	notes []string
}

// specExtensions are how the name of a spec file ends. What ends otherwise is
// the name of a program.
var specExtensions = []string{".yaml", ".yml", ".json"}

// parseSource tells a spec file from a command: a name that ends like one, alone
// or with "--" and a command behind it, is a spec file. Everything after a
// leading "--" is a command, whatever it is called.
func parseSource(cmd *cobra.Command, args []string) (source, error) {
	if len(args) == 0 {
		return source{}, usagef("there is nothing to run: give a spec file, or a command after --; usage: %s", cmd.UseLine())
	}
	alone := len(args) == 1 || args[1] == "--"
	isSpec := args[0] == "-" || slices.Contains(specExtensions, filepath.Ext(args[0]))
	if !alone && isSpec && cmd.ArgsLenAtDash() != 0 && isFile(args[0]) {
		return source{}, usagef("%s is a spec, and %q after it is not for a spec: put flags before the file, and a command after --", args[0], args[1])
	}
	if err := noProgram(cmd, args[0]); err != nil {
		return source{}, err
	}
	if err := noScript(cmd, args); err != nil {
		return source{}, err
	}
	switch {
	case cmd.ArgsLenAtDash() == 0:
		return source{command: args, notes: notSeparated(args)}, nil
	case !alone || !isSpec:
		first, others, notes, err := parsePrograms(args, wordsOf(cmd))
		return source{command: first, others: others, notes: notes}, err
	}
	s := source{file: args[0]}
	if len(args) > 1 {
		if s.command = args[2:]; len(s.command) == 0 {
			return s, usagef("the command after -- is missing; give one, or leave the -- out")
		}
	}
	return s, nil
}

// assignment is a word such as worker=2 or LEVEL=debug.
var assignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]*=`)

// noProgram refuses a word in the place of the program that looks like more of a flag in front
// of it, unless there is a program of that name.
func noProgram(cmd *cobra.Command, word string) error {
	if cmd.ArgsLenAtDash() == 0 || !assignment().MatchString(word) {
		return nil
	}
	if _, err := exec.LookPath(word); err == nil {
		return nil
	}
	name, value, _ := strings.Cut(word, "=")
	if _, err := strconv.Atoi(value); err == nil && cmd.Flags().Changed("task") {
		return usagef("%q is no program; each type of tasks has a --task of its own: write --task %s", word, word)
	}
	return usagef("%q is no program; to set the variable %s write -x %s in front of the program", word, name, word)
}

// noScript refuses a script that nobody may execute in the place of the program.
func noScript(cmd *cobra.Command, args []string) error {
	interpreter := fault.InterpreterFor(args[0])
	if interpreter == "" || cmd.Flags().Changed("dir") || !isFile(args[0]) {
		return nil
	}
	if _, err := exec.LookPath(args[0]); err == nil {
		return nil
	}
	more := ""
	if len(args) > 1 {
		more = " ..."
	}
	return usagef("%s is neither a spec (.yaml, .yml or .json) nor a program that may be executed; name its interpreter: %s -- %s %s%s",
		args[0], cmd.CommandPath(), interpreter, args[0], more)
}

// isFile tells a spec from a program that is called like one: nobody may execute it.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return path == "-" || err == nil && info.Mode().IsRegular() && info.Mode()&0o111 == 0
}

// title returns how problems of the spec are announced.
func (s source) title() string {
	switch s.file {
	case "":
		return s.run
	case "-":
		return "the spec on stdin"
	}
	return s.file
}

// read makes a spec of the source and the flags, and reports every problem. The
// paths in it are absolute, so that they mean the same on the host.
func (s source) read(in io.Reader, f *specFlags) (*spec.RunSpec, error) {
	var problems []string
	complete := func(r *spec.RunSpec) {
		if len(s.command) > 0 {
			r.Command = s.command
		}
		if len(s.others) > 0 {
			problems = append(problems, f.applyPrograms(r, s.others)...)
		}
		problems = append(problems, f.apply(r)...)
		if r.Name == "" {
			r.Name = s.name(r)
		}
		problems = append(problems, absolute(r)...)
	}
	r, err := s.decode(in, complete)
	var invalid *spec.InvalidSpecError
	switch {
	case errors.As(err, &invalid):
		for _, p := range invalid.Problems {
			problems = append(problems, f.inFlags(p, s.file == "" && s.given == nil).String())
		}
		if invalid.More > 0 {
			problems = append(problems, fmt.Sprintf("and %d more", invalid.More))
		}
	case err != nil:
		problems = append(problems, err.Error())
	}
	if len(problems) > 0 {
		return nil, &usageError{about: s.title(), problems: problems}
	}
	return r, nil
}

// decode reads the file where there is one, in YAML or JSON, also in the form
// of TensorFlow's cluster spec. complete runs before anything is validated.
func (s source) decode(in io.Reader, complete func(*spec.RunSpec)) (*spec.RunSpec, error) {
	if s.given != nil {
		return spec.Decode(s.given, complete)
	}
	if s.file == "" {
		r := &spec.RunSpec{}
		complete(r)
		return r, r.Validate()
	}
	b, err := readSome(s.file, in)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(s.file) == ".json" {
		return spec.Decode(b, complete)
	}
	return spec.DecodeYAML(b, complete) // which reads JSON as well
}

// maxSpec is more than any spec may have; it keeps a wrong file from being read
// to its end.
const maxSpec = 8 << 20

func readSome(file string, in io.Reader) ([]byte, error) {
	if file != "-" {
		f, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no such file; to run a program of that name, write it after --")
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxSpec+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxSpec {
		return nil, fmt.Errorf("it has more than %d MiB, which no run spec has", maxSpec>>20)
	}
	return b, nil
}

// interpreters are programs that say little about what runs.
var interpreters = []string{"python", "python3", "bash", "sh", "env", "node", "ruby", "perl"}

// name returns the name of a run whose spec has none: that of its file, or of its
// program.
func (s source) name(r *spec.RunSpec) string {
	if s.file != "" && s.file != "-" {
		return runName(s.file)
	}
	return nameOf(r.Command)
}

// nameOf returns the name of what a command runs. It may be empty.
func nameOf(command []string) string {
	for i, arg := range command {
		if strings.HasPrefix(arg, "-") || strings.Contains(arg, "=") {
			if i > 0 && arg == "-c" {
				break
			}
			continue
		}
		if name := runName(arg); name != "" && !slices.Contains(interpreters, name) {
			return name
		}
	}
	if len(command) > 0 {
		return runName(command[0])
	}
	return ""
}

// runName makes a part of a run ID of a file's name.
func runName(path string) string {
	base := filepath.Base(path)
	base = strings.TrimSuffix(base, filepath.Ext(base))
	keep := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}
	const most = 40
	name := strings.Trim(strings.Map(keep, base), "-_")
	return name[:min(len(name), most)]
}

// absolute resolves the paths that a person wrote relative to where they are.
func absolute(s *spec.RunSpec) (problems []string) {
	resolve := func(path *string) {
		if *path == "" {
			return
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %s; give an absolute path", *path, err))
			return
		}
		*path = abs
	}
	resolve(&s.Ship.Dir)
	resolve(&s.Logs.Dir)
	if s.Ships() {
		return problems // working directories are in what is shipped
	}
	resolve(&s.Dir)
	for i := range s.Tasks {
		resolve(&s.Tasks[i].Dir)
		for index, o := range s.Tasks[i].Overrides {
			resolve(&o.Dir)
			s.Tasks[i].Overrides[index] = o
		}
	}
	return problems
}
