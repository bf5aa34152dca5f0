package spec

import (
	"fmt"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// The fields of the memo of a run.
const (
	MemoOwner   = "owner"
	MemoName    = "name"
	MemoTasks   = "tasks"
	MemoCommand = "command"
	MemoDir     = "dir"
	// MemoSilence is the silence limit of the spec, if it has one.
	MemoSilence = "silence"
)

// Memo returns the facts that lists show of a run in addition to its search attributes.
func (s *RunSpec) Memo(owner string) map[string]any {
	m := map[string]any{MemoOwner: owner, MemoName: s.Name, MemoTasks: s.Sizes(), MemoCommand: s.commandLine(), MemoDir: s.Dir}
	if s.Silence != "" {
		m[MemoSilence] = s.Silence
	}
	return m
}

// commandLine returns the command of the first tasks, cut to fit into a list.
func (s *RunSpec) commandLine() string {
	words := s.Command
	if len(words) == 0 && len(s.Tasks) > 0 {
		words = s.Tasks[0].Command
	}
	return shorten.Text(strings.Join(words, " "), 200)
}

// Sizes returns the sizes of the groups, for example "chief=1 worker=3".
func (s *RunSpec) Sizes() string {
	var groups []string
	for _, g := range s.Tasks {
		groups = append(groups, fmt.Sprintf("%s=%d", g.Type, g.Size()))
	}
	return strings.Join(groups, " ")
}
