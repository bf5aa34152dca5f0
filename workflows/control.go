package workflows

import (
	"cmp"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

// control runs Control on the hosts of the tasks and answers with those that
// were reached, by it or before. It is an error only if there are none.
func (r *clusterRun) control(ctx workflow.Context, a lifecycle.Control, before []string, done workflow.Settable) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		answer, failure := r.controlHosts(ctx, a, controlling)
		answer.Tasks = append(append([]string{}, before...), answer.Tasks...)
		switch {
		case done == nil:
			if failure != nil {
				workflow.GetLogger(ctx).Warn("control failed", "op", string(a.Op), "error", failure)
			}
		case failure != nil && len(answer.Tasks) == 0:
			done.SetError(failure)
		default:
			slices.Sort(answer.Tasks)
			answer.Tasks = slices.Compact(answer.Tasks)
			done.SetValue(answer)
		}
	})
}

// capture has the stacks written down, and tells the machine whatever comes of it.
func (r *clusterRun) capture(ctx workflow.Context, a lifecycle.Capture) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		answer, err := r.controlHosts(ctx, lifecycle.Control{Op: lifecycle.ControlStacks, Tasks: a.Tasks}, capturing)
		if err != nil {
			workflow.GetLogger(ctx).Warn("stacks were not captured", "error", err)
		}
		hosts := make(map[string]string, len(r.placed))
		for _, task := range sortedKeys(r.placed) {
			hosts[task] = r.placed[task].name
		}
		r.events.Send(ctx, request{event: lifecycle.Captured{For: a.For, Files: answer.Files, Stacks: answer.Stacks, Hosts: hosts}})
	})
}

// maxListed bounds names in a summary that has little else.
const maxListed = 300

// controlHosts runs Control on each host that has some of the tasks, and returns
// what all of them answered and the first error.
func (r *clusterRun) controlHosts(ctx workflow.Context, a lifecycle.Control, options func(workflow.Context, string, string) workflow.Context) (spec.RequestAnswer, error) {
	type asked struct {
		host   *host
		tasks  []string
		answer future[activities.ControlOutput]
	}
	var all []asked
	for _, h := range r.hosts {
		var here []string
		for _, task := range a.Tasks {
			if r.placed[task] == h {
				here = append(here, task)
			}
		}
		if len(here) == 0 {
			continue
		}
		actx := options(ctx, h.queue, fmt.Sprintf("%s %s", a.Op, markdown.Inline(listed(here), maxListed)))
		all = append(all, asked{h, here, call(actx, spec.ActivityControl, (*activities.Host).Control,
			activities.ControlInput{Run: r.began, Op: a.Op, Generation: r.machine.Generation(), Tasks: here, Signal: a.Signal, Grace: a.Grace})})
	}
	var answer spec.RequestAnswer
	var failure error
	var stacks []stacktree.Tree
	for _, q := range all {
		out, err := q.answer.get(ctx)
		if err != nil {
			if a.Op == lifecycle.ControlStacks {
				stacks = append(stacks, r.noStacks(q.host, q.tasks, err))
			}
			err = refusedBy(q.host, err)
			failure = cmp.Or(failure, err)
			for _, task := range q.tasks {
				answer.Problems = append(answer.Problems, spec.TaskProblem{Task: task, Message: task + ": " + reasonOf(err)})
			}
		}
		answer.Tasks = append(answer.Tasks, out.Tasks...)
		stacks = append(stacks, out.Stacks)
		for _, task := range sortedKeys(out.Files) {
			if answer.Files == nil {
				answer.Files = map[string]string{}
			}
			answer.Files[task] = out.Files[task]
		}
	}
	answer.Stacks = stacktree.Merge(stacks...).Fit(stacktree.RunBytes)
	return answer, failure
}

// noStacks returns why the tasks of a host have no stacks.
func (r *clusterRun) noStacks(h *host, tasks []string, err error) stacktree.Tree {
	stack := stacktree.NoAnswer(h.name)
	if !temporal.IsTimeoutError(err) {
		stack = stacktree.Stack{{Kind: stacktree.Unknown, Function: "has no stack: " + reasonOf(err)}}
	}
	var trees []stacktree.Tree
	for _, task := range tasks {
		if rank, ok := r.machine.Rank(task); ok {
			trees = append(trees, stacktree.Of(rank, stack))
		}
	}
	return stacktree.Merge(trees...)
}
