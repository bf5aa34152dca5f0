package task

import (
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/tasks/task/pmi"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// taskMPICommand returns the command that starts an MPI program and passes it a descriptor for its
// requests to the launcher. This process answers them, so that the host worker may be absent or
// restart, and so that programs without MPI do not cost anything.
func taskMPICommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "mpi [flags] -- PROGRAM [ARGUMENT ...]",
		Short: "Start an MPICH program as a rank of the run",
		Args:  cli.SomeArgs(1, "PROGRAM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := currentTask()
			if err != nil {
				return err
			}
			w, err := mpiWorld()
			if err != nil {
				return err
			}
			return runRank(cmd.Context(), t, w, args)
		},
	}
}

// mpiRank is this task's place in the MPI world, from its environment.
type mpiRank struct {
	pmi.World
	localRank, localSize int
	// alone reports whether only this task was restarted.
	alone bool
}

func mpiWorld() (w mpiRank, err error) {
	var restarts, generation int
	for name, n := range map[string]*int{
		"RANK": &w.Rank, "WORLD_SIZE": &w.Size, "LOCAL_RANK": &w.localRank, "LOCAL_WORLD_SIZE": &w.localSize,
		"RESTART_COUNT": &restarts, "GENERATION": &generation,
	} {
		if *n, err = strconv.Atoi(os.Getenv("CLUSTERRUN_" + name)); err != nil {
			return w, cli.Usagef("CLUSTERRUN_%s is %q, but clusterrun sets it to a number: do not change it", name, os.Getenv("CLUSTERRUN_"+name))
		}
	}
	w.alone = restarts > generation
	return w, nil
}
