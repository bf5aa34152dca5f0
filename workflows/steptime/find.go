package steptime

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// lateRatio is the minimum ratio to the peers' median for naming a task or a host.
const lateRatio = 1.25

// Task describes a task for [Find].
type Task struct {
	Name, Type, Host string
	Rank             int
	Time             *spec.StepTime // nil if unknown
}

// Find returns the tasks that take longer per step than the rest of their type. If these include
// all tasks of a type on a host, it returns the host instead. Results are ordered by ratio, the
// largest first.
func Find(tasks []Task) []spec.Slow {
	type kind struct {
		name     string
		barriers bool
	}
	byKind := map[kind][]Task{}
	var kinds []kind
	for _, t := range tasks {
		if t.Time == nil || !(t.Time.Seconds > 0) {
			continue
		}
		k := kind{t.Type, t.Time.Barriers}
		if byKind[k] == nil {
			kinds = append(kinds, k)
		}
		byKind[k] = append(byKind[k], t)
	}
	var slow []spec.Slow
	for _, k := range kinds {
		slow = append(slow, among(byKind[k])...)
	}
	slices.SortFunc(slow, func(a, b spec.Slow) int {
		return cmp.Or(cmp.Compare(b.Ratio, a.Ratio), strings.Compare(a.Task, b.Task), strings.Compare(a.Host, b.Host), cmp.Compare(a.Rank, b.Rank))
	})
	return slow
}

// TooFew reports whether tasks cannot be compared yet because too few steps are known.
func TooFew(tasks []Task) bool {
	reported, known := 0, 0
	for _, t := range tasks {
		if t.Time != nil {
			reported++
			if t.Time.Seconds > 0 {
				known++
			}
		}
	}
	return reported > 1 && known < 2
}

// among returns the slow tasks among tasks of one type.
func among(tasks []Task) (slow []spec.Slow) {
	slices.SortFunc(tasks, func(a, b Task) int {
		return cmp.Or(cmp.Compare(a.Time.Seconds, b.Time.Seconds), cmp.Compare(a.Rank, b.Rank), strings.Compare(a.Name, b.Name))
	})
	byHost := map[string][]Task{}
	var hosts []string
	for _, t := range tasks {
		if byHost[t.Host] == nil {
			hosts = append(hosts, t.Host)
		}
		byHost[t.Host] = append(byHost[t.Host], t)
	}
	named := map[string]bool{}
	for _, host := range hosts {
		own := byHost[host] // fastest first
		if host == "" || len(own) < 2 || len(own) == len(tasks) || own[0].Time.Seconds < lateRatio*tasks[0].Time.Seconds {
			continue
		}
		others := medianWithout(tasks, len(tasks)-len(own), func(t Task) bool { return t.Host == host })
		if own[0].Time.Seconds < lateRatio*others {
			continue
		}
		named[host] = true
		s := found(own[(len(own)-1)/2], others)
		s.Task, s.Rank, s.Tasks = "", own[0].Rank, len(own)
		for _, t := range own {
			s.Rank, s.Steps = min(s.Rank, t.Rank), min(s.Steps, t.Time.Steps)
		}
		slow = append(slow, s)
	}
	tasks = slices.DeleteFunc(tasks, func(t Task) bool { return named[t.Host] })
	for i, t := range tasks {
		if len(tasks) < 2 || t.Time.Seconds < lateRatio*tasks[0].Time.Seconds {
			continue
		}
		middle := (len(tasks) - 2) / 2 // without the task itself
		if i <= middle {
			middle++
		}
		if others := tasks[middle].Time.Seconds; t.Time.Seconds >= lateRatio*others {
			slow = append(slow, found(t, others))
		}
	}
	return slow
}

func found(t Task, others float64) spec.Slow {
	return spec.Slow{
		Task: t.Name, Rank: t.Rank, Host: t.Host, Ratio: math.Round(t.Time.Seconds/others*100) / 100,
		Seconds: t.Time.Seconds, Others: others, Steps: t.Time.Steps, Barriers: t.Time.Barriers,
	}
}

// medianWithout returns the median time of the n tasks that out does not exclude. If there are two
// middle values, it returns the lower one.
func medianWithout(sorted []Task, n int, out func(Task) bool) float64 {
	middle := (n - 1) / 2
	for _, t := range sorted {
		if out(t) {
			continue
		}
		if middle == 0 {
			return t.Time.Seconds
		}
		middle--
	}
	return 0
}
