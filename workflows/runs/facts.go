package runs

import (
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// NewID generates a run ID from a name, or from "run" if the name is empty. Workflow code must not
// call it.
func NewID(name string) string {
	var random [5]byte
	_, _ = rand.Read(random[:]) // it never fails
	return cmp.Or(name, "run") + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(random[:]))
}

// The fields of a run's memo.
const (
	MemoOwner   = "owner"
	MemoName    = "name"
	MemoTasks   = "tasks"
	MemoCommand = "command"
	MemoDir     = "dir"
	// MemoTorchrun is set if the starter exits like torchrun.
	MemoTorchrun = "torchrun"
)

// OwnerOf returns the default owner of runs that a workflow starts: its ID, truncated because
// databases accept 255 bytes in a search attribute.
func OwnerOf(workflowID string) string { return shorten.Text(workflowID, 200) }

// Memo returns the facts that lists show about a run in addition to its search attributes.
func Memo(s *spec.RunSpec, owner string) map[string]any {
	return map[string]any{MemoOwner: owner, MemoName: s.Name, MemoTasks: cluster(s), MemoCommand: CommandLine(s), MemoDir: s.Dir}
}

// CommandLine returns the command of the first tasks, truncated to fit into a list.
func CommandLine(s *spec.RunSpec) string {
	words := s.Command
	if len(words) == 0 && len(s.Tasks) > 0 {
		words = s.Tasks[0].Command
	}
	return shorten.Text(strings.Join(words, " "), 200)
}

// Summary returns the line that the Web UI shows for a run. The server accepts at most 400 bytes.
func Summary(s *spec.RunSpec) string {
	line := markdown.Name(cluster(s))
	if len(s.Command) > 0 {
		const most = 200
		line += ": " + markdown.Inline(strings.Join(s.Command, " "), most)
	}
	return line
}

// cluster describes the tasks, such as "chief=1 worker=3".
func cluster(s *spec.RunSpec) string {
	groups := list.Of(s.Tasks, func(g spec.TaskGroup) string { return fmt.Sprintf("%s=%d", g.Type, g.Size()) })
	return strings.Join(groups, " ")
}
