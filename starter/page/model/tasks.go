package model

import (
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// tasksOf returns a run's tasks.
func tasksOf(s *starter.Status) []page.Task {
	slow := map[string]float64{}
	for _, t := range s.Slow {
		if t.Task != "" {
			slow[t.Task] = t.Ratio
		}
	}
	culprit := ""
	if s.Result != nil && s.Result.FirstFailure != nil {
		culprit = s.Result.FirstFailure.Task
	}
	words := s.Doing()
	tasks := make([]page.Task, len(s.Tasks))
	for i, t := range s.Tasks {
		out := page.Task{
			Rank: t.Rank, Name: t.Name, Host: t.Host, PID: t.PID, State: words[i], Restarts: t.Restarts,
			Slow: slow[t.Name], LastOutput: t.LastOutput,
		}
		if t.Progress != nil {
			out.Step, out.Steps, out.Message = t.Progress.Current, t.Progress.Total, t.Progress.Message
		}
		steps := t.Steps
		if t.Exit != nil {
			steps = t.Exit.Steps
			addUsage(&out, *t.Exit)
		}
		if steps != nil {
			out.Seconds = steps.Seconds
		}
		if u := t.Usage; u != nil {
			out.CPUs, out.Memory, out.GPUs, out.GPUMemory = u.CPUs, u.RSSBytes, u.GPUs, u.GPUMemoryBytes
		}
		out.Tone, out.How = lookOf(t, words[i], t.Name == culprit)
		tasks[i] = out
	}
	return tasks
}

// addUsage adds an exited process's usage.
func addUsage(t *page.Task, e spec.Exit) {
	t.Memory, t.GPUMemory = e.Usage.MaxRSSBytes, e.Usage.MaxGPUMemoryBytes
	if lived := e.Ended.Sub(e.Started).Seconds(); lived > 0 && !e.Started.IsZero() {
		t.CPUs, t.GPUs = e.Usage.CPUSeconds()/lived, e.Usage.GPUSeconds/lived
	}
}

// lookOf returns a task's tone and how it ended.
func lookOf(t starter.TaskStatus, word string, culprit bool) (page.Tone, string) {
	if e := t.Exit; e != nil && t.State == spec.TaskEnded {
		how := outcome.Short(*e)
		switch {
		case culprit:
			return page.Culprit, how
		case e.Cause.ByItself(), e.Cause == spec.CauseHostLost:
			return page.Bad, how
		case e.OK():
			return page.Good, ""
		}
		return page.Muted, how
	}
	switch word {
	case outcome.DoingMissing, outcome.DoingRestart, outcome.DoingUnknown:
		return page.Warning, t.LastFailure
	case string(spec.TaskPending):
		return page.Waits, ""
	case string(spec.TaskStopping):
		return page.Warning, ""
	}
	if t.Usage != nil && t.Usage.SilentSeconds > 0 {
		return page.Warning, "silent"
	}
	return page.Active, ""
}
