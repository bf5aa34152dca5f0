package series

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Point is a process's usage in an interval. For a single sample, mean and maximum are equal.
type Point struct {
	From time.Time `json:"from"`
	// Seconds is the interval's length. If it is 0, the [Point] is empty.
	Seconds float64 `json:"seconds"`
	// CPUs and GPUs are the numbers it kept busy.
	CPUs    float64 `json:"cpus"`
	MaxCPUs float64 `json:"max_cpus"`
	GPUs    float64 `json:"gpus,omitempty"`
	MaxGPUs float64 `json:"max_gpus,omitempty"`
	// RSSBytes and GPUMemoryBytes are the largest samples.
	RSSBytes       float64 `json:"rss_bytes"`
	GPUMemoryBytes float64 `json:"gpu_memory_bytes,omitempty"`
	// Steps counts the steps that the program reported, or barrier rounds of all tasks. StepSeconds
	// is the mean step duration, excluding waits at barriers.
	Steps          float64 `json:"steps,omitempty"`
	StepSeconds    float64 `json:"step_seconds,omitempty"`
	MaxStepSeconds float64 `json:"max_step_seconds,omitempty"`
}

// To returns the interval's end.
func (p Point) To() time.Time { return p.From.Add(time.Duration(p.Seconds * float64(time.Second))) }

// With returns a point that covers p, q and the time between them.
func (p Point) With(q Point) Point {
	if q.From.Before(p.From) {
		p, q = q, p
	}
	to := p.To()
	if q.To().After(to) {
		to = q.To()
	}
	return Point{
		From: p.From, Seconds: to.Sub(p.From).Seconds(),
		CPUs: mean(p.CPUs, p.Seconds, q.CPUs, q.Seconds), MaxCPUs: max(p.MaxCPUs, q.MaxCPUs),
		GPUs: mean(p.GPUs, p.Seconds, q.GPUs, q.Seconds), MaxGPUs: max(p.MaxGPUs, q.MaxGPUs),
		RSSBytes: max(p.RSSBytes, q.RSSBytes), GPUMemoryBytes: max(p.GPUMemoryBytes, q.GPUMemoryBytes),
		Steps: p.Steps + q.Steps, StepSeconds: mean(p.StepSeconds, p.Steps, q.StepSeconds, q.Steps),
		MaxStepSeconds: max(p.MaxStepSeconds, q.MaxStepSeconds),
	}
}

// mean returns the weighted mean of two values.
func mean(a, weightA, b, weightB float64) float64 {
	if weightA+weightB <= 0 {
		return max(a, b)
	}
	return (a*weightA + b*weightB) / (weightA + weightB)
}

// Coarsen merges neighbors until no more than most points are left. The points must be in time order,
// and most must be positive. Coarsen may modify them.
func Coarsen(points []Point, most int) []Point {
	if len(points) <= most {
		return points
	}
	now := points[len(points)-1].To()
	// next is the following point's index, and cost the loss of detail from merging both.
	next, cost := make([]int, len(points)), make([]float64, len(points))
	due := func(i int) {
		if cost[i] = math.Inf(1); next[i] < len(points) {
			cost[i] = costOf(points[i], points[next[i]], now)
		}
	}
	for i := range points {
		next[i] = i + 1
		due(i)
	}
	for left := len(points); left > most; left-- {
		at, before, last := 0, 0, 0 // before is the point before at
		for i := 0; i < len(points); i = next[i] {
			if cost[i] < cost[at] {
				at, before = i, last
			}
			last = i
		}
		points[at], next[at] = points[at].With(points[next[at]]), next[next[at]]
		due(at)
		due(before)
	}
	kept := points[:0]
	for i := 0; i < len(next); i = next[i] {
		kept = append(kept, points[i])
	}
	return kept
}

// costOf returns the loss of detail from merging two neighbors: their length, relative to the
// expected length at their age.
func costOf(p, q Point, now time.Time) float64 {
	age := max(0, now.Sub(p.From).Seconds())
	return q.To().Sub(p.From).Seconds() / math.Sqrt(age+1)
}

// Resample returns n points of equal length between two times. Values are divided among the points
// that an interval overlaps. A result point without overlapping intervals has length 0.
func Resample(points []Point, from, to time.Time, n int) []Point {
	out := make([]Point, max(0, n))
	width := to.Sub(from).Seconds() / float64(max(1, n))
	if !(width > 0) {
		return out
	}
	for _, p := range points {
		begin := p.From.Sub(from).Seconds() / width
		end := begin + p.Seconds/width
		first, last := max(0, math.Floor(begin)), min(float64(n), math.Ceil(end))
		for i := first; i < last; i++ {
			part := p
			begins, ends := max(begin, i), min(end, i+1)
			share := (ends - begins) / max(end-begin, math.SmallestNonzeroFloat64)
			if !(share > 0) {
				continue
			}
			part.From = from.Add(time.Duration(i * width * float64(time.Second)))
			part.Seconds, part.Steps = (ends-begins)*width, p.Steps*share
			if have := out[int(i)]; have.Seconds > 0 {
				covered := have.Seconds + part.Seconds
				part = have.With(part)
				part.Seconds = covered
			}
			out[int(i)] = part
		}
	}
	for i := range out {
		out[i].From = from.Add(time.Duration(float64(i) * width * float64(time.Second)))
		if out[i].Seconds > 0 {
			out[i].Seconds = width
		}
	}
	return out
}

// Total returns one point that covers all points. If there are no points, its length is 0. Gaps
// between points do not affect its means.
func Total(points []Point) Point {
	if len(points) == 0 {
		return Point{}
	}
	all, covered := points[0], points[0].Seconds
	to := all.To()
	for _, p := range points[1:] {
		all.Seconds = covered
		all.From = p.From // both start at the same time, so With does not count a gap
		all = all.With(p)
		covered += p.Seconds
		if p.To().After(to) {
			to = p.To()
		}
	}
	all.From = points[0].From
	all.Seconds = to.Sub(all.From).Seconds()
	return all
}

// sorted sorts points by time. Points are unsorted if the clock was set back.
func sorted(points []Point) []Point {
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Seconds, b.Seconds)) })
	return points
}
