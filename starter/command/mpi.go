package command

import (
	"cmp"
	"debug/elf"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// sayMPI warns where several tasks are one program that is linked with MPI. Only mpirun and
// its like tell such processes of each other: started by anybody else, each is rank 0 of 1
// and ends well.
func (a *app) sayMPI(s *spec.RunSpec, f *specFlags) {
	tasks := s.TaskList()
	if len(tasks) == 1 && f.others == nil {
		return
	}
	type program struct{ dir, name string }
	seen := map[program]bool{}
	for _, t := range tasks {
		p := program{t.Dir, t.Command[0]}
		if seen[p] {
			continue
		}
		seen[p] = true
		if library := mpiLibrary(p.dir, p.name); library != "" {
			a.say("%s is linked with %s: each of its processes would be rank 0 of 1 here, since only mpirun tells them of each other; write `clusterrun run -n 1 -- mpirun -n COUNT %s`", p.name, library, p.name)
		}
	}
}

// mpiLibrary returns the library of MPI that a program of this machine is linked with.
func mpiLibrary(dir, name string) string {
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = cmp.Or(dir, ".") + "/" + name
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
