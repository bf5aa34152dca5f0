package page

// Tone is the look of a state. Each has a color and a symbol.
type Tone int

// The values of [Tone], the most urgent first.
const (
	// Culprit is the root cause of a failure.
	Culprit Tone = iota
	// Bad is a failure.
	Bad
	// Warning is for a state that needs a look: a silent host, a restart.
	Warning
	// Active is for something that runs.
	Active
	// Waits is the tone before a start.
	Waits
	// Good is a good end.
	Good
	// Muted is for an end because of another's: a victim of a root cause, or a stop on request.
	Muted
)

var toneNames = [...]string{"culprit", "bad", "warning", "active", "waits", "good", "muted"}

func (t Tone) String() string { return toneNames[t] }

// class returns the CSS class.
func (t Tone) class() string { return "t-" + toneNames[t] }

// symbol returns the ID of the symbol in the page.
func (t Tone) symbol() string { return "i-" + toneNames[t] }

// Class is for templates.
func (t Tone) Class() string { return t.class() }
