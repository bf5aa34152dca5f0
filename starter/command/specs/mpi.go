package specs

import (
	"cmp"
	"debug/elf"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ApplyMPI looks for MPI in the programs of a multi-task run. Programs of MPICH's family become
// ranks of one world, unless the profiles are given. ApplyMPI warns about other families, whose
// processes only mpirun and similar launchers can connect. Without a launcher, each process would
// silently be rank 0 of 1.
func ApplyMPI(a *cli.App, s *spec.RunSpec, f *SpecFlags) error {
	tasks := s.TaskList()
	if len(tasks) == 1 && f.Others == nil || slices.Contains(s.EnvProfiles, spec.EnvMPI) {
		return nil
	}
	seen := map[[2]string]bool{}
	for _, t := range tasks {
		program := t.Command[0]
		key := [2]string{t.Dir, program}
		if seen[key] {
			continue
		}
		seen[key] = true
		library := mpiLibrary(t)
		switch {
		case library == "":
		case !isMPICH(library):
			a.Say("%s is linked with %s: each of its processes would be rank 0 of 1, because only mpirun connects them; use `clusterrun run -n 1 -- mpirun -n COUNT %s`", program, library, program)
		case s.EnvProfiles != nil:
			a.Say("%s is linked with %s: each of its processes would be rank 0 of 1; add mpi to env_profiles: --set 'env_profiles=[%s]'", program, library, joinProfiles(s.EnvProfiles))
		case s.RestartsTasks():
			return cli.Usagef("%s is linked with %s, and an MPI rank that restarts alone cannot rejoin the other ranks; add --restart-scope group, or omit --auto-restart", program, library)
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

// isMPICH reports whether a library speaks PMI: MPICH's own, and those with its ABI, number 12.
// Open MPI's number differs.
func isMPICH(library string) bool {
	return strings.HasPrefix(library, "libmpich") || strings.HasSuffix(library, ".so.12")
}

// mpiLibrary returns the MPI library linked into a task's program, or "" if there is none or the
// program is not on this machine.
func mpiLibrary(t spec.Task) string {
	name := t.Command[0]
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = cmp.Or(t.Dir, ".") + "/" + name
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
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
