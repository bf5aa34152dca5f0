package page

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// Series holds one quantity's values over time.
type Series struct {
	// Name is the quantity, such as "CPU" or "Step time". Unit is the values' unit.
	Name string
	Unit Unit
	// Times holds the times of the values, in order.
	Times []time.Time
	// Each task has as many values as there are times.
	Tasks []TaskSeries
	// LowIsBad reports whether the task with the lowest values is the worst.
	LowIsBad bool
}

// TaskSeries holds one task's values. An unknown value is NaN.
type TaskSeries struct {
	Rank   int
	Name   string
	Values []float64
}

// Unit is the unit of values.
type Unit int

// The values of [Unit].
const (
	Number  Unit = iota // a plain number, such as a number of processors
	Bytes               // memory
	Seconds             // step time
	Metric              // a number that the program reports; whether low or high is bad is unknown
)

// format returns a value with its unit.
func (u Unit) format(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case u == Bytes:
		return bytesText(int64(v))
	case u == Metric:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case u == Seconds:
		return units.SpanOfSeconds(v)
	case v == 0:
		return "0"
	}
	return number(v)
}

// median returns the tasks' median, minimum and maximum at each time.
func (s *Series) median() (least, median, most []float64) {
	at := make([]float64, 0, len(s.Tasks))
	for i := range s.Times {
		at = at[:0]
		for _, t := range s.Tasks {
			if v := t.at(i); !math.IsNaN(v) {
				at = append(at, v)
			}
		}
		if len(at) == 0 {
			at = append(at, math.NaN())
		}
		slices.Sort(at)
		least, median, most = append(least, at[0]), append(median, at[len(at)/2]), append(most, at[len(at)-1])
	}
	return least, median, most
}

func (t *TaskSeries) at(i int) float64 {
	if i >= len(t.Values) {
		return math.NaN()
	}
	return t.Values[i]
}

// last returns the last known value.
func last(values []float64) float64 {
	for i := len(values) - 1; i >= 0; i-- {
		if !math.IsNaN(values[i]) {
			return values[i]
		}
	}
	return math.NaN()
}

// worst returns the task with the worst mean over the last quarter, or -1 if there are fewer
// than two tasks.
func (s *Series) worst() int {
	found, worst := -1, math.Inf(1)
	for i, t := range s.Tasks {
		sum, n := 0.0, 0
		for k := len(s.Times) * 3 / 4; k < len(s.Times); k++ {
			if v := t.at(k); !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		if n == 0 {
			continue
		}
		mean := sum / float64(n)
		if !s.LowIsBad {
			mean = -mean
		}
		if mean < worst {
			found, worst = i, mean
		}
	}
	if len(s.Tasks) < 2 || s.Unit == Metric {
		return -1
	}
	return found
}
