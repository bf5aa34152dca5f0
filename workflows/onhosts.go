package workflows

import (
	"cmp"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

// onHosts carries out a request on the tasks' hosts, and returns their answers and the first
// error.
type onHosts func(workflow.Context) (spec.RequestAnswer, error)

// group identifies the run's generation to its hosts.
func (c *hostCalls) group() spec.Group {
	return spec.Group{Run: c.began, Generation: c.machine.Generation()}
}

func tasksInput(to spec.Group, tasks []string) any {
	return hostapi.TasksInput{Group: to, Tasks: tasks}
}

// answer answers a request with the tasks reached now and those in before. It fails only if no
// task was reached. done is nil if no client waits for the answer.
func (c *hostCalls) answer(ctx workflow.Context, reach onHosts, before []string, done workflow.Settable) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		answer, failure := reach(ctx)
		answer.Tasks = append(append([]string{}, before...), answer.Tasks...)
		switch {
		case done == nil:
			if failure != nil {
				workflow.GetLogger(ctx).Warn("a host did not carry out a request", "error", failure)
			}
		case failure != nil && len(answer.Tasks) == 0:
			done.SetError(failure)
		default:
			slices.Sort(answer.Tasks)
			answer.Tasks = slices.Compact(answer.Tasks)
			done.SetValue(answer.Bounded())
		}
	})
}

// capture captures the stacks. It always reports to the machine, even if it fails.
func (c *hostCalls) capture(ctx workflow.Context, a lifecycle.Capture) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		answer, err := c.captureStacks(spec.StacksRequest{Tasks: a.Tasks, Again: spec.DurationOf(a.Again)}, capturing)(ctx)
		if err != nil {
			workflow.GetLogger(ctx).Warn("stacks could not be saved", "error", err)
		}
		hosts := make(map[string]string, len(c.placed))
		for _, task := range sortedKeys(c.placed) {
			hosts[task] = c.placed[task].Name
		}
		c.events.Send(ctx, request{event: lifecycle.Captured{For: a.For, Files: answer.Files, Stacks: answer.Stacks, Motion: answer.Motion, Hosts: hosts}})
	})
}

// captureStacks captures the stacks. If a host does not answer, its tasks' stacks are replaced by
// the reason.
func (c *hostCalls) captureStacks(q spec.StacksRequest, options activityOptions) onHosts {
	return func(ctx workflow.Context) (spec.RequestAnswer, error) {
		all := c.askEach(ctx, hostapi.Name(hostapi.Host.CaptureStacks), options, q.Tasks, partOf(q))
		for i, q := range all {
			if q.err != nil {
				all[i].Stacks = c.noStacks(q.host, q.tasks, q.err)
			}
		}
		return together(all)
	}
}

// reach returns a function that carries out a request on its tasks' hosts.
func (c *hostCalls) reach(a lifecycle.HostRequest) onHosts {
	if q, ok := a.Request.(spec.StacksRequest); ok {
		return c.captureStacks(q, requesting(len(c.hosts)))
	}
	return c.ask(a.Activity, a.Tasks, partOf(a.Request))
}

// partOf returns a function that returns a host's part of a request.
func partOf(q spec.TasksRequest) func(spec.Group, []string) any {
	return func(to spec.Group, tasks []string) any {
		return spec.HostRequest[spec.TasksRequest]{Group: to, Request: q.For(tasks)}
	}
}

// ask returns a function that executes an activity on the tasks' hosts.
func (c *hostCalls) ask(activity string, tasks []string, in func(to spec.Group, tasks []string) any) onHosts {
	return func(ctx workflow.Context) (spec.RequestAnswer, error) {
		return together(c.askEach(ctx, activity, requesting(len(c.hosts)), tasks, in))
	}
}

// maxListed limits the length of the names in a summary that contains little else.
const maxListed = 300

// asked is a host's answer for some of its tasks.
type asked struct {
	spec.RequestAnswer
	host  *host
	tasks []string
	err   error
}

// askEach executes an activity on each host with some of the tasks.
func (c *hostCalls) askEach(ctx workflow.Context, activity string, options activityOptions, tasks []string, in func(to spec.Group, tasks []string) any) []asked {
	var all []asked
	var answers []future[spec.RequestAnswer]
	on := map[*host][]string{}
	for _, task := range tasks {
		on[c.placed[task]] = append(on[c.placed[task]], task)
	}
	for _, h := range c.hosts {
		here := on[h]
		if len(here) == 0 {
			continue
		}
		all = append(all, asked{host: h, tasks: here})
		on := options(ctx, h.Queue, markdown.Inline(listed(here), maxListed))
		answers = append(answers, future[spec.RequestAnswer]{workflow.ExecuteActivity(on, activity, in(c.group(), here))})
	}
	for i, f := range answers {
		all[i].RequestAnswer, all[i].err = f.get(ctx)
	}
	return all
}

// together combines the answers of several hosts, and returns the first error.
func together(all []asked) (answer spec.RequestAnswer, failure error) {
	stacks := make([]stacktree.Tree, len(all))
	for i, q := range all {
		if q.err != nil {
			err := refusedBy(q.host, q.err)
			failure = cmp.Or(failure, err)
			for _, task := range q.tasks {
				answer.Problems = append(answer.Problems, spec.TaskProblem{Task: task, Message: task + ": " + reasonOf(err)})
			}
		}
		answer.Tasks = append(answer.Tasks, q.Tasks...)
		answer.Problems = append(answer.Problems, q.Problems...)
		stacks[i] = q.Stacks
		answer.Motion = answer.Motion.Join(q.Motion)
		for _, task := range sortedKeys(q.Files) {
			if answer.Files == nil {
				answer.Files = map[string]string{}
			}
			answer.Files[task] = q.Files[task]
		}
	}
	answer.Stacks = stacktree.Merge(stacks...).Fit(stacktree.RunBytes)
	return answer, failure
}

// noStacks returns why a host's stacks are missing.
func (c *hostCalls) noStacks(h *host, tasks []string, err error) stacktree.Tree {
	stack := stacktree.NoAnswer(h.Name)
	if !temporal.IsTimeoutError(err) {
		stack = stacktree.Stack{{Kind: stacktree.Unknown, Function: "has no stack: " + reasonOf(err)}}
	}
	var trees []stacktree.Tree
	for _, task := range tasks {
		if rank, ok := c.machine.Rank(task); ok {
			trees = append(trees, stacktree.Of(rank, stack))
		}
	}
	return stacktree.Merge(trees...)
}
