package specs

import (
	"bufio"
	"cmp"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// ApplyMPI looks for MPI in the programs of a run with several tasks. Programs of MPICH's
// family become ranks of one world, unless the profiles are given. It warns about other
// families: only mpirun and the like can connect their processes, so each would be rank 0 of 1
// here, without an error.
func ApplyMPI(a *cli.App, s *spec.RunSpec, f *SpecFlags) error {
	tasks := s.TaskList()
	if len(tasks) == 1 && f.Others == nil || slices.Contains(s.EnvProfiles, spec.EnvMPI) {
		return nil
	}
	seen := map[string]bool{}
	for _, t := range tasks {
		p := mpiProgram{t.Dir, t.Command}
		key := fmt.Sprintf("%q", p)
		if seen[key] {
			continue
		}
		seen[key] = true
		library := p.library()
		switch {
		case library == "":
		case !isMPICH(library):
			a.Say("%s is linked with %s: each of its processes would be rank 0 of 1 here, since only mpirun tells them of each other; write `clusterrun run -n 1 -- mpirun -n COUNT %s`", p.what(), library, p.shown())
		case s.EnvProfiles != nil:
			a.Say("%s is linked with %s: each of its processes would be rank 0 of 1 here; add mpi to the env_profiles, by --env-profile %s", p.what(), library, joinProfiles(s.EnvProfiles))
		case s.RestartsTasks():
			return cli.Usagef("%s is linked with %s, and a rank of MPI that is started again alone finds no other rank waiting for it; add --restart-scope group, or leave --auto-restart out", p.what(), library)
		default:
			s.EnvProfiles = append(s.WithDefaults().EnvProfiles, spec.EnvMPI)
			return nil
		}
	}
	return nil
}

func joinProfiles(given []spec.EnvProfile) string {
	var text strings.Builder
	for _, p := range given {
		text.WriteString(string(p) + ",")
	}
	return text.String() + string(spec.EnvMPI)
}

// isMPICH reports whether a library speaks PMI: MPICH's own, and those with its ABI, whose
// number is 12. Open MPI's has another number.
func isMPICH(library string) bool {
	return strings.HasPrefix(library, "libmpich") || strings.HasSuffix(library, ".so.12")
}

// mpiProgram is a command with its working directory.
type mpiProgram struct {
	dir     string
	command []string
}

// what names the program that is linked with MPI, for messages.
func (p mpiProgram) what() string {
	if p.script() != "" {
		return "mpi4py of " + p.command[0]
	}
	return p.command[0]
}

func (p mpiProgram) shown() string {
	if script := p.script(); script != "" {
		return p.command[0] + " " + script
	}
	return p.command[0]
}

var pythons = lazyregexp.New(`^python[0-9.]*$`)

// script returns the file that a command line of Python runs, or "" if it runs a module or is
// not Python's.
func (p mpiProgram) script() string {
	if !pythons().MatchString(filepath.Base(p.command[0])) {
		return ""
	}
	for _, arg := range p.command[1:] {
		switch {
		case !strings.HasPrefix(arg, "-"):
			return arg
		case arg == "-c" || arg == "-m":
			return ""
		}
	}
	return ""
}

// library returns the MPI library that a program of this machine is linked with. For a Python
// script that imports mpi4py, it is the library of mpi4py.
func (p mpiProgram) library() string {
	program, err := exec.LookPath(p.from(p.command[0], strings.Contains(p.command[0], "/")))
	if err != nil {
		return ""
	}
	script := p.script()
	if script == "" {
		return mpiLibrary(program)
	}
	if !importsMPI(p.from(script, true)) {
		return ""
	}
	find := exec.Command(program, "-c", "import importlib.util as u; print(*u.find_spec('mpi4py').submodule_search_locations)")
	find.Dir = p.dir
	out, err := find.Output()
	if err != nil {
		return ""
	}
	modules, _ := filepath.Glob(strings.TrimSpace(string(out)) + "/MPI*.so")
	for _, module := range modules {
		if library := mpiLibrary(module); library != "" {
			return library
		}
	}
	return ""
}

// from returns the path of a file that the command names, in its directory if it is one.
func (p mpiProgram) from(name string, isPath bool) string {
	if !isPath || filepath.IsAbs(name) {
		return name
	}
	return cmp.Or(p.dir, ".") + "/" + name
}

var mpi4py = lazyregexp.New(`^\s*(import|from)\s+mpi4py\b`)

// importsMPI reports whether a script imports mpi4py. It does not read beyond a very long line.
func importsMPI(script string) bool {
	file, err := os.Open(script)
	if err != nil {
		return false
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if mpi4py().Match(lines.Bytes()) {
			return true
		}
	}
	return false
}

func mpiLibrary(path string) string {
	file, err := elf.Open(path)
	if err != nil {
		return "" // a script
	}
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return ""
	}
	for _, library := range libraries {
		if strings.HasPrefix(library, "libmpi") {
			return library
		}
	}
	return ""
}
