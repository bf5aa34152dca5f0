package taskapi

import (
	"fmt"

	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/privatedir"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// Task describes a task of this host.
type Task struct {
	ID runkey.Task
	// RestartCount is its process's restart count.
	RestartCount int
	// Host is the host's name.
	Host string
	// LogDir contains its process's files. It is empty if the run keeps no files.
	LogDir string
	// User runs its processes. No other user may use the socket. If nil, they run as the host
	// worker's user.
	User *hostuser.User
	// View is shared by a generation's tasks.
	View *View
}

// View describes the tasks of one run generation to each other.
type View struct {
	// Members lists the cluster, in rank order.
	Members []Member
	// Tasks lists the spec's tasks, in rank order. They are the default participants of a barrier.
	Tasks []string
	// Here lists this host's tasks.
	Here map[string]bool
	// Local reports whether every barrier is local, even if its arrivals do not request that.
	Local bool
}

// Member is a task of the cluster.
type Member = wire.Member

// Progress is a task's reported progress.
type Progress = wire.Progress

// SocketVar is the environment variable for a task's socket path.
const SocketVar = wire.SocketVar

// short returns a short name for a path: 50 bits of a hash.
func short(parts ...string) string {
	return privatedir.Short(parts...)
}

func dirOf(r runkey.Run) string { return short(r.Namespace, r.WorkflowID, r.RunID) }

func fileOf(id runkey.Task) string { return short(fmt.Sprint(id.Generation), id.Task) }

// describe returns the task's description for itself.
func (t *Task) describe() wire.Task {
	out := wire.Task{
		Run: t.ID.Run.WorkflowID, Execution: t.ID.Run.RunID, Task: t.ID.Task,
		RestartCount: t.RestartCount, Generation: t.ID.Generation, Host: t.Host,
		WorldSize: len(t.View.Members),
	}
	for _, m := range t.View.Members {
		if m.Task == t.ID.Task {
			out.Type, out.Index, out.Rank, out.LocalRank = m.Type, m.Index, m.Rank, m.LocalRank
			out.Host, out.Address = m.Host, m.Address
		}
	}
	for _, m := range t.View.Members {
		if m.Host == out.Host {
			out.LocalWorldSize++
		}
	}
	return out
}
