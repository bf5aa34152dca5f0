package cli

import (
	"context"
	"fmt"
	"path"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// MostMatched is the largest number of runs that a pattern may match for a command that changes
// them without asking.
const MostMatched = 3

// Choice says what the arguments of a command may name.
type Choice struct {
	// Tasks allows arguments after the first that name tasks of the first run; see
	// [starter.Status.Select].
	Tasks bool
	// Beginnings allows the beginning of an ID.
	Beginnings bool
	// Of limits the runs for which a pattern stands.
	Of starter.RunState
}

// Chosen are the runs that arguments name, or some tasks of one run.
type Chosen struct {
	// Runs has no duplicates. It is in the order of the arguments, and the runs of a pattern
	// are in the order of their start.
	Runs []*starter.Run
	// Tasks are words for tasks of the only run.
	Tasks []string
	// Matched is the number of runs that only patterns name.
	Matched int
}

// IDs returns the IDs of the runs.
func (c *Chosen) IDs() []string {
	return list.Of(c.Runs, func(r *starter.Run) string { return r.ID })
}

// CheckPatterns refuses arguments that are neither IDs of runs nor patterns.
func CheckPatterns(args []string) error {
	for _, arg := range args {
		if err := CheckRun(arg); err != nil {
			return err
		}
		if _, err := path.Match(arg, ""); spec.IsPattern(arg) && err != nil {
			return Usagef("%q is no pattern: a [ has no ]; write it like 'iris-[a-z]*'", arg)
		}
	}
	return nil
}

// Resolve returns the runs that args name, or the tasks of the run that args[0] names. The
// arguments after the first are tasks if all of them are tasks of that run, and runs if none of
// them is; a mixture is an error. A word that can be a task and is not a run counts as a task: a
// task with a spelling mistake must not make a command act on whole runs.
func Resolve(ctx context.Context, c client.Client, args []string, o Choice) (*Chosen, error) {
	if o.Tasks && len(args) > 1 && !spec.IsPattern(args[0]) {
		run, tasks, err := o.tasks(ctx, c, args[0], args[1:])
		if err != nil || len(tasks) > 0 {
			return &Chosen{Runs: []*starter.Run{run}, Tasks: tasks}, err
		}
	}
	return o.runs(ctx, c, args)
}

// tasks returns the run with that ID and the tasks that words name, or no tasks if all words
// name runs.
func (o Choice) tasks(ctx context.Context, c client.Client, id string, words []string) (*starter.Run, []string, error) {
	run, missing := o.run(ctx, c, id)
	if missing != nil && !isNotFound(missing) {
		return nil, nil, missing
	}
	known := &starter.Status{}
	if missing == nil {
		names, _, err := run.TaskNames(ctx)
		if err != nil {
			return nil, nil, err
		}
		for rank, name := range names {
			typ, _, _ := spec.ParseTaskName(name)
			known.Tasks = append(known.Tasks, starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: name, Type: typ, Rank: rank}})
		}
	}
	var tasks, runs []string
	for _, word := range words {
		_, unknown := known.Select([]string{word})
		isTask := len(unknown) == 0
		if !isTask && missing == nil && !spec.IsPattern(word) {
			_, err := o.run(ctx, c, word)
			if err != nil && !isNotFound(err) {
				return nil, nil, err
			}
			isTask = err != nil // or the run says that it has no such task
		}
		if isTask {
			tasks = append(tasks, word)
		} else {
			runs = append(runs, word)
		}
	}
	if len(tasks) > 0 && len(runs) > 0 {
		return nil, nil, Usagef("%s is a task of run %s, and %s is a run; name tasks of one run, or only runs", tasks[0], run.ID, runs[0])
	}
	return run, tasks, nil
}

func isNotFound(err error) bool {
	return starter.IsError[*starter.NotFoundError](err)
}

// run returns the run with that ID, and a [*starter.NotFoundError] if it does not exist.
func (o Choice) run(ctx context.Context, c client.Client, id string) (*starter.Run, error) {
	if o.Beginnings {
		found, err := starter.Find(ctx, c, id)
		return starter.Get(c, found, ""), err
	}
	r := starter.Get(c, id, "")
	_, _, err := r.Queue(ctx)
	return r, err
}

// runs returns the runs that args name.
func (o Choice) runs(ctx context.Context, c client.Client, args []string) (*Chosen, error) {
	chosen := &Chosen{}
	named := map[string]bool{}
	add := func(id string) bool {
		if named[id] {
			return false
		}
		named[id] = true
		chosen.Runs = append(chosen.Runs, starter.Get(c, id, ""))
		return true
	}
	for _, arg := range args {
		if !spec.IsPattern(arg) {
			id := arg
			if o.Beginnings {
				var err error
				if id, err = starter.Find(ctx, c, arg); err != nil {
					return nil, err
				}
			}
			add(id)
			continue
		}
		ids, err := starter.Matching(ctx, c, arg, o.Of)
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			return nil, fmt.Errorf("%s: no %srun matches; `clusterrun list` shows the runs there are", arg, o.Of)
		}
		for _, id := range ids {
			if add(id) {
				chosen.Matched++
			}
		}
	}
	return chosen, nil
}
