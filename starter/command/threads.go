package command

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// sayThreads says once to each user, as torchrun does at each run, that the processes of Python share this machine with one
// thread each, where nobody has said how many they are to have.
func sayThreads(a *app, s *spec.RunSpec) {
	const variable = "OMP_NUM_THREADS"
	s = s.WithDefaults()
	tasks := s.TaskList()
	if os.Getenv(variable) != "" || len(tasks) < 2 || !slices.Contains(s.EnvProfiles, spec.EnvTorch) || len(s.CPUs) > 0 {
		return
	}
	for _, t := range tasks {
		if _, given := t.Env[variable]; !given && strings.HasPrefix(filepath.Base(t.Command[0]), "python") {
			if !a.firstTime("said-threads") {
				return
			}
			a.say("%s", a.color.dim(variable+" is not set, and is 1 for each process, as with torchrun; set it to what is best for your program"))
			return
		}
	}
}

// firstTime reports whether this is the first call with that name, as far as the state directory
// tells: a file of that name is made there.
func (a *app) firstTime(name string) bool {
	if os.MkdirAll(a.global.stateDir, 0o700) != nil {
		return true
	}
	f, err := os.OpenFile(filepath.Join(a.global.stateDir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_ = f.Close()
	}
	return !errors.Is(err, fs.ErrExist)
}
