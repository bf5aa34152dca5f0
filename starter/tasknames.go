package starter

import "context"

// TaskNames returns the names of the run's tasks: those in its spec, in rank order, followed by
// those started later. complete is false if the run did not answer, so that later tasks may be
// missing.
func (r *Run) TaskNames(ctx context.Context) (names []string, complete bool, err error) {
	d, err := r.describe(ctx)
	if err != nil {
		return nil, false, r.requestError(err)
	}
	s, err := r.spec(ctx, d.GetWorkflowExecutionInfo().GetExecution().GetRunId())
	if err != nil {
		return nil, false, r.requestError(err)
	}
	for _, t := range s.TaskList() {
		names = append(names, t.Name())
	}
	answer, err := r.query(ctx)
	if err != nil {
		return names, false, ctx.Err()
	}
	for _, t := range answer.Tasks {
		if _, ok := s.Task(t.Name); !ok {
			names = append(names, t.Name)
		}
	}
	return names, true, nil
}
