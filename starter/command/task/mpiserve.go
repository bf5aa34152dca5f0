package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/task/pmi"
)

// mpiBarrier is the barrier where ranks meet.
const mpiBarrier = "MPI"

// reportPatience limits how long the host takes to record why a rank failed.
const reportPatience = 5 * time.Second

// servePMI answers the program until it has closed the connection. A program that does not get an
// answer fails on its own. A program that aborts waits to be killed.
func servePMI(ctx context.Context, t *task.Task, w mpiRank, conn *os.File, program *os.Process) error {
	defer conn.Close()
	err := answerPMI(ctx, t, w, conn)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	report := task.Report{Kind: "MPI", Message: err.Error()}
	if _, ok := errors.AsType[*pmi.AbortError](err); ok {
		report.Kind = "MPI_Abort"
		defer func() { _ = program.Kill() }()
	} else {
		fmt.Fprintf(os.Stderr, "clusterrun: MPI: %v\n", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	_ = t.Report(ctx, report)
	return err
}

// answerPMI answers the program until it has closed the connection, or an answer fails.
func answerPMI(ctx context.Context, t *task.Task, w mpiRank, conn *os.File) error {
	members, err := t.Cluster(ctx)
	if err != nil {
		return err
	}
	return pmi.Serve(ctx, conn, pmi.NewSession(placed(w.World, members)), func(ctx context.Context, brings string) ([]string, error) {
		options := []task.Option{task.Value(brings)}
		if w.localSize == w.Size {
			options = append(options, task.Local())
		}
		r, err := t.Barrier(ctx, mpiBarrier, options...)
		return r.Values, err
	})
}

// placed returns w with the placement of all tasks in the cluster.
func placed(w pmi.World, members []task.Member) pmi.World {
	hosts, types := make([]string, len(members)), []string{}
	for i, m := range members {
		hosts[i] = m.Host
		if !slices.Contains(types, m.Type) {
			types = append(types, m.Type)
		}
		if m.Rank == w.Rank {
			w.App = slices.Index(types, m.Type)
		}
	}
	w.Mapping = pmi.Mapping(hosts)
	return w
}
