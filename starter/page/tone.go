package page

import "github.com/clusterrun/clusterrun/workflows/outcome"

// Tone is how a state looks: a color and a symbol.
type Tone int

// The values of [Tone], most urgent first.
const (
	// Culprit is the root cause of a failure.
	Culprit Tone = iota
	// Bad is a failure.
	Bad
	// Warning is for a state that needs attention: a silent host, a restart.
	Warning
	// Active is for something that is running.
	Active
	// Waits is for something that has not started.
	Waits
	// Good is for success.
	Good
	// Muted is for tasks that were stopped: a root cause's victims, or on request.
	Muted
)

var toneNames = [...]string{"culprit", "bad", "warning", "active", "waits", "good", "muted"}

func (t Tone) String() string { return toneNames[t] }

// class returns the CSS class.
func (t Tone) class() string { return "t-" + toneNames[t] }

// symbol returns the symbol's ID in the page.
func (t Tone) symbol() string { return "i-" + toneNames[t] }

// Class is for templates.
func (t Tone) Class() string { return t.class() }

// ToneOf returns the tone for a severity.
func ToneOf(s outcome.Severity) Tone {
	switch s {
	case outcome.Bad:
		return Bad
	case outcome.Warning:
		return Warning
	case outcome.Waits:
		return Waits
	case outcome.Good:
		return Good
	case outcome.Note:
		return Muted
	}
	return Active
}
