package cli

import (
	"context"
	"fmt"
	"path"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// MaxMatched is the maximum number of runs that a pattern may match for a command that changes
// them without confirmation.
const MaxMatched = 3

// RunSelector selects a command's runs. Each argument is a run ID, a unique prefix of one, or a
// pattern that matches IDs. --last stands for the latest run.
type RunSelector struct {
	last      bool
	execution string
	// Of limits the runs that a pattern matches.
	Of RunState
}

// Selected holds the runs selected by words, or some tasks of one run.
type Selected struct {
	// Runs does not contain duplicates. It follows the order of the words, and a pattern's runs are
	// sorted by start.
	Runs []*starter.Run
	// Tasks holds words for tasks of the only run; see [starter.Status.Select].
	Tasks []string
	// Matched counts the runs that only patterns name.
	Matched int
}

// IDs returns the runs' IDs.
func (s *Selected) IDs() []string {
	return list.Of(s.Runs, func(r *starter.Run) string { return r.ID })
}

// Flags adds the flags that select a run.
func (s *RunSelector) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.execution, "execution", "", "the execution `ID` (Temporal's run ID), if several have the same run ID")
	cmd.Flags().BoolVar(&s.last, "last", false, "the latest run, instead of RUN")
}

// Args checks arguments with check. --last counts as the argument RUN.
func (s *RunSelector) Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("execution") && uuid.Validate(s.execution) != nil {
			return Usagef("--execution %q: use an execution's ID, such as 0190c7a5-3c5e-7d1f-8a2b-4c6d8e0f1a2b, from `clusterrun list --json` or the Web UI", s.execution)
		}
		if s.last {
			args = append([]string{"last"}, args...)
		}
		return check(cmd, args)
	}
}

// CheckPatterns refuses words that are neither run IDs nor patterns.
func CheckPatterns(words []string) error {
	for _, word := range words {
		if err := CheckRun(word); err != nil {
			return err
		}
		if _, err := path.Match(word, ""); spec.IsPattern(word) && err != nil {
			return Usagef("%q is not a valid pattern: a [ has no matching ]; for example, 'iris-[a-z]*'", word)
		}
	}
	return nil
}

// OnRun makes cmd call do with the run named by its argument.
func OnRun(a *App, cmd *cobra.Command, do func(context.Context, *starter.Run) error) *cobra.Command {
	var s RunSelector
	s.Flags(cmd)
	cmd.Args = s.Args(OneArg("RUN"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return WithRun(cmd.Context(), a, &s, args, func(r *starter.Run, _ []string) error { return do(cmd.Context(), r) })
	}
	return cmd
}

// WithRun connects, and calls do with the run that args name and the remaining arguments.
func WithRun(ctx context.Context, a *App, s *RunSelector, args []string, do func(*starter.Run, []string) error) error {
	c, _, err := a.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	r, rest, err := s.One(ctx, c, args)
	if err != nil {
		return err
	}
	return do(r, rest)
}

// Rest returns the arguments after the one that names the run.
func (s *RunSelector) Rest(args []string) []string {
	if s.last {
		return args
	}
	return args[1:]
}

// One returns the run that args name, and the remaining arguments.
func (s *RunSelector) One(ctx context.Context, c client.Client, args []string) (*starter.Run, []string, error) {
	if s.last {
		runs, err := starter.List(ctx, c, starter.ListOptions{Limit: 1})
		if err != nil {
			return nil, nil, err
		}
		if len(runs) == 0 {
			return nil, nil, Usagef("--last: there are no runs")
		}
		return starter.Get(c, runs[0].RunID, s.execution), s.Rest(args), nil
	}
	id, err := starter.Find(ctx, c, args[0])
	if err != nil {
		return nil, nil, err
	}
	return starter.Get(c, id, s.execution), s.Rest(args), nil
}

// All returns the runs that args name.
func (s *RunSelector) All(ctx context.Context, c client.Client, args []string) (*Selected, error) {
	if s.last {
		r, rest, err := s.One(ctx, c, args)
		if len(rest) > 0 {
			err = Usagef("--last replaces RUN; omit --last or %s", rest[0])
		}
		return &Selected{Runs: []*starter.Run{r}}, err
	}
	selected := &Selected{}
	named := map[string]bool{}
	add := func(id string) bool {
		isNew := !named[id]
		if named[id] = true; isNew {
			selected.Runs = append(selected.Runs, starter.Get(c, id, ""))
		}
		return isNew
	}
	for _, word := range args {
		if !spec.IsPattern(word) {
			id, err := starter.Find(ctx, c, word)
			if starter.IsError[*starter.NotFoundError](err) {
				id, err = word, nil // the command reports this run, and continues with the rest
			}
			if err != nil {
				return nil, err
			}
			add(id)
			continue
		}
		ids, err := Matching(ctx, c, word, s.Of)
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			return nil, fmt.Errorf("%s: no %srun matches; see `clusterrun list`", word, s.Of)
		}
		for _, id := range ids {
			if add(id) {
				selected.Matched++
			}
		}
	}
	if s.execution != "" {
		if len(selected.Runs) > 1 {
			return nil, Usagef("--execution selects one run, but there are %d; name one run", len(selected.Runs))
		}
		selected.Runs[0] = starter.Get(c, selected.Runs[0].ID, s.execution)
	}
	return selected, nil
}

// AllOrTasks returns the runs that args name, or tasks of the run that args[0] names. The
// arguments after the first are tasks if all of them are tasks of that run, and runs if none of
// them is; a mixture is an error. A word that can be a task and is not a run counts as a task,
// so that a misspelled task does not make a command act on whole runs.
func (s *RunSelector) AllOrTasks(ctx context.Context, c client.Client, args []string) (*Selected, error) {
	if !s.last && (len(args) == 1 || spec.IsPattern(args[0])) {
		return s.All(ctx, c, args)
	}
	run, words, err := s.One(ctx, c, args)
	switch {
	case s.last:
		return &Selected{Runs: []*starter.Run{run}, Tasks: words}, err
	case starter.IsError[*starter.NotFoundError](err):
		return s.All(ctx, c, args)
	case err != nil:
		return nil, err
	}
	tasks, runs, err := splitWords(ctx, c, run, words)
	switch {
	case err != nil:
		return nil, err
	case len(tasks) == 0:
		return s.All(ctx, c, args)
	case len(runs) > 0:
		return nil, Usagef("%s is a task of run %s, but %s is a run; name tasks of one run, or only runs", tasks[0], run.ID, runs[0])
	}
	return &Selected{Runs: []*starter.Run{run}, Tasks: tasks}, nil
}

// splitWords divides words into those for tasks of run r and those for runs.
func splitWords(ctx context.Context, c client.Client, r *starter.Run, words []string) (tasks, runs []string, err error) {
	known, err := r.Status(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, word := range words {
		_, unknown := known.Select([]string{word})
		isTask := len(unknown) == 0
		if !isTask && !spec.IsPattern(word) {
			_, err := starter.Find(ctx, c, word)
			if isTask = starter.IsError[*starter.NotFoundError](err); err != nil && !isTask { // the run reports that the task is unknown
				return nil, nil, err
			}
		}
		if isTask {
			tasks = append(tasks, word)
		} else {
			runs = append(runs, word)
		}
	}
	return tasks, runs, nil
}
