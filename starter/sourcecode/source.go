package sourcecode

import (
	"fmt"

	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Source is a git work tree's state.
type Source struct {
	// Dir is the work tree's top directory on the starter's host.
	Dir string `json:"dir"`
	// Commit is empty before the first commit, and Branch while no branch is checked out.
	Commit string `json:"commit,omitempty"`
	Branch string `json:"branch,omitempty"`
	// Files lists the files that differ from the commit, and the files and directories that git
	// neither tracks nor ignores. More counts those not listed.
	Files []File `json:"files,omitempty"`
	More  int    `json:"more,omitempty"`
	// Note describes what is missing, and why.
	Note string `json:"note,omitempty"`
}

// File is a file that differs from the commit.
type File struct {
	Name string `json:"name"`
	// State is changed, added, removed, in conflict, or untracked.
	State string `json:"state"`
	// Digest is git's name for the content, as printed by git hash-object.
	Digest string `json:"digest,omitempty"`
}

// short is how many digits of a commit or a digest users see.
const short = 10

// String returns "train.py (changed, 3f2c1a9d01)".
func (f File) String() string { return f.Name + " (" + f.Difference() + ")" }

// Difference returns "changed, 3f2c1a9d01".
func (f File) Difference() string {
	if f.Digest == "" {
		return f.State
	}
	return f.State + ", " + f.Digest[:min(short, len(f.Digest))]
}

// Revision returns "3f2c1a9d01 (main)".
func (s *Source) Revision() string {
	text := "no commit yet"
	if s.Commit != "" {
		text = s.Commit[:min(short, len(s.Commit))]
	}
	if s.Branch != "" {
		text += " (" + s.Branch + ")"
	}
	return text
}

// Lines formats the state for users.
func (s *Source) Lines() []string {
	const most = 8
	lines := []string{s.Dir + " at " + s.Revision()}
	if len(s.Files) > 0 {
		lines = append(lines, "different: "+shorten.List(list.Of(s.Files, File.String), most))
	}
	if s.More > 0 {
		lines = append(lines, fmt.Sprintf("%d more differ, which are not listed", s.More))
	}
	if s.Note != "" {
		lines = append(lines, s.Note)
	}
	return lines
}
