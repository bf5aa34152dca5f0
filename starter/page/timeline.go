package page

import "time"

// Timeline is the life of a run.
type Timeline struct {
	// From and To are the bounds. To is the present if the run is open.
	From, To time.Time
	Spans    []Span
	// Events are in the order of time.
	Events []Event
}

// Span is a part of the life of a run. Spans with the same lane share a line.
type Span struct {
	Lane, Text string
	From, To   time.Time
	Tone       Tone
}

// Event is something that happened: a restart, a lost host, a stop, the end.
type Event struct {
	At   time.Time
	Text string
	Tone Tone
}
