package page

import "time"

// Series has the values of one quantity over time.
type Series struct {
	// Name is the quantity, such as "CPU" or "Step time", and Unit the unit of the values.
	Name string
	Unit Unit
	// Times are the times of the values, in their order.
	Times []time.Time
	Tasks []TaskSeries
}

// TaskSeries are the values of one task. A value that is not known is NaN.
type TaskSeries struct {
	Rank   int
	Name   string
	Values []float64
}

// Unit is the unit of values.
type Unit int

// The values of [Unit].
const (
	Number  Unit = iota // a number, such as of processors
	Bytes               // of memory
	Seconds             // of a step
)
