package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/filelock"
	"github.com/clusterrun/clusterrun/activities/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Imported is a run that was imported.
type Imported struct {
	Manifest
	dir string
	at  time.Time
}

// All returns the runs imported below a directory, by the names of their directories.
func All(parent string) ([]Imported, error) {
	manifests, err := filepath.Glob(filepath.Join(globQuoted(parent), "*", "*", manifestFile))
	if err != nil {
		return nil, err
	}
	var all []Imported
	for _, path := range manifests {
		i := Imported{dir: filepath.Dir(path)}
		if strings.HasPrefix(filepath.Base(filepath.Dir(i.dir)), ".") {
			continue // an import that has not ended
		}
		text, err := os.ReadFile(path)
		if info, err := os.Stat(path); err == nil {
			i.at = info.ModTime()
		}
		if err == nil && json.Unmarshal(text, &i.Manifest) == nil {
			all = append(all, i)
		}
	}
	return all, nil
}

// Dir returns where it is.
func (i Imported) Dir() string { return i.dir }

// At returns when it was imported.
func (i Imported) At() time.Time { return i.at }

// Remove removes it. What is interrupted leaves what the next one removes, or the next
// [Import].
func (i Imported) Remove() error {
	run := filepath.Dir(i.dir)
	tmp, remove, err := filelock.TempDir(filepath.Dir(run), unfinished)
	if err != nil {
		return err
	}
	defer remove()
	removed := filepath.Join(tmp, "removed")
	if err := os.Rename(i.dir, removed); err != nil {
		return err
	}
	_ = os.Remove(run) // fails while there are other executions
	return os.RemoveAll(removed)
}

// Find returns the runs imported below a directory whose IDs begin like that, and of those with
// the same ID the one that was exported last. Where an ID is the same, it is that one alone.
func Find(parent, beginning, execution string) ([]Imported, error) {
	all, err := All(parent)
	if err != nil {
		return nil, err
	}
	latest := map[string]int{}
	var found []Imported
	for _, i := range all {
		if !strings.HasPrefix(i.RunID, beginning) || execution != "" && i.ExecutionID != execution {
			continue
		}
		at, ok := latest[i.RunID]
		if !ok {
			latest[i.RunID] = len(found)
			found = append(found, i)
		} else if i.Exported.After(found[at].Exported) {
			found[at] = i
		}
	}
	if at, ok := latest[beginning]; ok {
		return found[at : at+1], nil
	}
	return found, nil
}

// globQuoted returns the pattern of [filepath.Glob] that matches one path.
func globQuoted(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// Account reads the account of an imported run. Its logs are those that were imported with it.
func (i Imported) Account() (*Account, error) {
	text, err := os.ReadFile(filepath.Join(i.dir, accountFile))
	if err != nil {
		return nil, err
	}
	a, err := parse(text)
	if err != nil || a.Status == nil {
		return nil, fmt.Errorf("%s: cannot be read; import the run again (%w)", filepath.Join(i.dir, accountFile), err)
	}
	i.ownLogs(a.Status)
	return a, nil
}

// ownLogs has the log directories of an account name those beside it, and the files of values
// those in them; others it has none.
func (i Imported) ownLogs(s *starter.Status) {
	own := func(dir *string) {
		_, n, rank, ok := tasklog.SplitProcessDir(*dir)
		*dir = ""
		if at := tasklog.ProcessDir(filepath.Join(i.dir, logsDir), n, rank); ok {
			if _, err := os.Stat(at); err == nil {
				*dir = at
			}
		}
	}
	exit := func(e *spec.Exit) {
		if e != nil {
			own(&e.LogDir)
			e.ErrorFile = ""
			e.ValueFile = i.valueFile(e)
		}
	}
	for t := range s.Tasks {
		own(&s.Tasks[t].LogDir)
		exit(s.Tasks[t].Exit)
	}
	if s.Result == nil {
		return
	}
	if f := s.Result.FirstFailure; f != nil {
		own(&f.LogDir)
		f.ErrorFile = ""
	}
	for t := range s.Result.Tasks {
		r := &s.Result.Tasks[t]
		r.StacksFile = ""
		exit(r.Exit)
		for e := range r.Exits {
			exit(&r.Exits[e])
		}
		if f := r.Failure; f != nil {
			own(&f.LogDir)
			f.ErrorFile = ""
		}
	}
}

// valueFile returns where the value of a process is that has one in a file, if it was imported.
func (i Imported) valueFile(e *spec.Exit) string {
	if e.ValueFile == "" || e.LogDir == "" {
		return ""
	}
	file := filepath.Join(e.LogDir, tasklog.ResultFile)
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// parse reads an account. What people get to see of it has no control characters but those of
// lines; the spec is as it was, since it may be run again, and shown as [spec.Cell] has it.
func parse(text []byte) (*Account, error) {
	var parts struct {
		Status json.RawMessage `json:"status"`
		Spec   *spec.RunSpec   `json:"spec"`
		Phases []Phase         `json:"phases"`
		Tasks  json.RawMessage `json:"tasks"`
		Keys   json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, err
	}
	a := &Account{Spec: parts.Spec, Phases: parts.Phases}
	for i := range a.Phases {
		a.Phases[i].Name = spec.Cell(a.Phases[i].Name)
	}
	if err := visible(parts.Status, &a.Status); err != nil {
		return nil, err
	}
	return a, errors.Join(visible(parts.Tasks, &a.Tasks), visible(parts.Keys, &a.Keys))
}

// visible decodes JSON with [spec.Visible] texts.
func visible(text json.RawMessage, to any) error {
	if len(text) == 0 {
		return nil
	}
	var doc any
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		return err
	}
	text, err := json.Marshal(shown(doc))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

func shown(v any) any {
	switch v := v.(type) {
	case string:
		return spec.Visible(v)
	case []any:
		for i := range v {
			v[i] = shown(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			out[spec.Visible(name)] = shown(item)
		}
		return out
	}
	return v
}

// String says which one it is.
func (i Imported) String() string {
	return fmt.Sprintf("run %s is an imported one: exported %s by clusterrun %s",
		i.RunID, i.Exported.UTC().Format(time.RFC3339), spec.Visible(i.Clusterrun))
}
