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
	// RestartCount is the restart count of its process.
	RestartCount int
	// Host is the name of the host.
	Host string
	// LogDir has the files of its process. It is empty if the run keeps no files.
	LogDir string
	// User is the user of its processes. No other user may use the socket. If it is nil, they
	// run as the host worker's own user.
	User *hostuser.User
	// View is shared by the tasks of a generation.
	View *View
}

// View is the knowledge of the tasks of one generation of a run about each other.
type View struct {
	// Members are the cluster, in rank order.
	Members []Member
	// Tasks are the tasks of the spec, in rank order. They are the participants of a barrier
	// that does not name any.
	Tasks []string
	// Here has the tasks of this host.
	Here map[string]bool
	// Local reports whether every barrier is local, even if its arrivals do not ask for that.
	Local bool
}

// Member is one task of the cluster.
type Member = wire.Member

// Progress is the progress that a task has reported.
type Progress = wire.Progress

// SocketVar is the environment variable with the path of a task's socket.
const SocketVar = wire.SocketVar

// short returns a short name for use in a path: 50 bits of a hash.
func short(parts ...string) string {
	return privatedir.Short(parts...)
}

func dirOf(r runkey.Run) string { return short(r.Namespace, r.WorkflowID, r.RunID) }

func fileOf(id runkey.Task) string { return short(fmt.Sprint(id.Generation), id.Task) }

// describe returns the description that the task gets of itself.
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
