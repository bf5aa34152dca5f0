package specs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// SayThreads reports, once per user, that Python processes on this machine use one thread each
// unless the number is set. torchrun reports this for each run.
func SayThreads(a *cli.App, s *spec.RunSpec) {
	const variable = "OMP_NUM_THREADS"
	s = s.WithDefaults()
	tasks := s.TaskList()
	if os.Getenv(variable) != "" || len(tasks) < 2 || !slices.Contains(s.EnvProfiles, spec.EnvTorch) || len(s.CPUs) > 0 {
		return
	}
	for _, t := range tasks {
		if _, given := t.Env[variable]; !given && strings.HasPrefix(filepath.Base(t.Command[0]), "python") {
			if !a.FirstTime("said-threads") {
				return
			}
			a.Say("%s", a.Color.Dim(variable+" is not set; using 1 per process, like torchrun. Set it to tune your program"))
			return
		}
	}
}
