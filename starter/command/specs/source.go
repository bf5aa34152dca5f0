package specs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Source holds the positional arguments of run, submit and validate.
type Source struct {
	File    string // of a spec, "-" for stdin, or empty
	Given   []byte // a spec in JSON that was not read from a file; its title is run
	Run     string
	Command []string
}

// ParseSource distinguishes a spec file from a command. A name with a spec's extension is a spec
// file if it is the only argument or if it is followed by "--" and a command. Everything after a
// leading "--" is a command.
func ParseSource(cmd *cobra.Command, args []string) (Source, error) {
	if len(args) == 0 {
		return Source{}, cli.Usagef("there is nothing to run: name a spec file, or add a command after --; usage: %s", cmd.UseLine())
	}
	alone := len(args) == 1 || args[1] == "--"
	isSpec := args[0] == "-" || slices.Contains(cli.SpecExtensions, filepath.Ext(args[0]))
	if !alone && isSpec && cmd.ArgsLenAtDash() != 0 && isFile(args[0]) {
		return Source{}, cli.Usagef("%s is a spec, but %q follows it: put flags before the file, and a command after --", args[0], args[1])
	}
	switch {
	case cmd.ArgsLenAtDash() == 0, !alone, !isSpec:
		return Source{Command: args}, nil
	}
	s := Source{File: args[0]}
	if len(args) > 1 {
		if s.Command = args[2:]; len(s.Command) == 0 {
			return s, cli.Usagef("the command after -- is missing; add one, or omit --")
		}
	}
	return s, nil
}

// isFile reports whether path can be a spec: a regular file without execute permission, or
// stdin. A program may be named like a spec.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return path == "-" || err == nil && info.Mode().IsRegular() && info.Mode()&0o111 == 0
}

// title returns the heading for the spec's problems.
func (s Source) title() string {
	switch s.File {
	case "":
		return s.Run
	case "-":
		return "the spec on stdin"
	}
	return s.File
}

// Read builds a spec from the source and the flags, and reports every problem. It makes the
// spec's paths absolute, so that they are valid on the host.
func (s Source) Read(in io.Reader, f *SpecFlags) (*spec.RunSpec, error) {
	var problems []string
	complete := func(r *spec.RunSpec) {
		if len(s.Command) > 0 {
			r.Command = s.Command
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
			problems = append(problems, f.inFlags(p, s.File == "" && s.Given == nil).String())
		}
		if invalid.More > 0 {
			problems = append(problems, fmt.Sprintf("and %d more", invalid.More))
		}
	case err != nil:
		problems = append(problems, err.Error())
	}
	if len(problems) > 0 {
		return nil, &cli.UsageError{About: s.title(), Problems: problems}
	}
	return r, nil
}

// decode decodes the file, if any, as YAML or JSON, including TensorFlow's cluster spec. It
// calls complete before it validates the spec.
func (s Source) decode(in io.Reader, complete func(*spec.RunSpec)) (*spec.RunSpec, error) {
	if s.Given != nil {
		return spec.Decode(s.Given, complete)
	}
	if s.File == "" {
		r := &spec.RunSpec{}
		complete(r)
		return r, r.Validate()
	}
	b, err := readSome(s.File, in)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(s.File) == ".json" {
		return spec.Decode(b, complete)
	}
	return spec.DecodeYAML(b, complete) // it also reads JSON
}

// maxSpec exceeds the size of any spec. It prevents a wrong file from being read completely.
const maxSpec = 8 << 20

func readSome(file string, in io.Reader) ([]byte, error) {
	if file != "-" {
		f, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the file does not exist; to run a program of that name, write it after --")
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
		return nil, fmt.Errorf("it is larger than %d MiB, so it cannot be a run spec", maxSpec>>20)
	}
	return b, nil
}

// interpreters are programs with names that do not describe a run.
var interpreters = []string{"python", "python3", "bash", "sh", "env", "node", "ruby", "perl"}

// name returns a name for a run without one in its spec: that of its file, or of its program.
func (s Source) name(r *spec.RunSpec) string {
	if s.File != "" && s.File != "-" {
		return runName(s.File)
	}
	return nameOf(r.Command)
}

// nameOf returns a name for the program that a command runs. It may be empty.
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

// runName derives part of a run ID from a file name.
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

// absolute resolves relative paths from the current directory.
func absolute(s *spec.RunSpec) (problems []string) {
	resolve := func(path *string) {
		if *path == "" {
			return
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %s; use an absolute path", *path, err))
			return
		}
		*path = abs
	}
	resolve(&s.Ship.Dir)
	resolve(&s.Logs.Dir)
	if s.Ships() {
		return problems // working directories are in the archive
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

// TaskNames returns for example "chief-0, worker-0 to worker-2".
func TaskNames(s *spec.RunSpec) string {
	var list []string
	for _, g := range s.Tasks {
		switch n := g.Size(); n {
		case 0:
		case 1:
			list = append(list, g.Type+"-0")
		default:
			list = append(list, fmt.Sprintf("%s-0 to %s-%d", g.Type, g.Type, n-1))
		}
	}
	return strings.Join(list, ", ")
}
