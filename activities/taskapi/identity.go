package taskapi

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"github.com/clusterrun/clusterrun/activities/hostuser"
	"github.com/clusterrun/clusterrun/activities/internal/wire"
	"github.com/clusterrun/clusterrun/activities/runkey"
)

// Task is a task as its host knows it.
type Task struct {
	ID runkey.Task
	// RestartCount is what its process is told.
	RestartCount int
	// Host is the host's name.
	Host string
	// LogDir has the files of its process. None: the run keeps no files.
	LogDir string
	// User is whom its processes run as, who alone can ask; nil: our own.
	User *hostuser.User
	// View is shared by the tasks of a generation.
	View *View
}

// View is what the tasks of one generation of a run know of each other.
type View struct {
	// Members are the cluster, in rank order.
	Members []Member
	// Tasks are the participants of a barrier that names none: those of the spec,
	// in rank order.
	Tasks []string
	// Here has the tasks of this host.
	Here map[string]bool
	// Local reports whether every barrier is a local one, whether its arrivals ask for that or not.
	Local bool
}

// Member is one task of the cluster.
type Member = wire.Member

// Progress is how far a task has got.
type Progress = wire.Progress

// SocketVar is the environment variable with the path of a task's socket.
const SocketVar = wire.SocketVar

// short returns a name for a path that must not be long: 50 bits of a hash.
func short(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:10]
}

func dirOf(r runkey.Run) string { return short(r.Namespace, r.WorkflowID, r.RunID) }

func fileOf(id runkey.Task) string { return short(fmt.Sprint(id.Generation), id.Task) }

// describe returns the answer to who asks.
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
