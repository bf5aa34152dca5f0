package sweep

// Open is a trial that an earlier execution of a sweep has started.
type Open struct {
	Trial int `json:"trial"`
	// RunID is the first execution of its workflow.
	RunID string `json:"run_id"`
}

// CheckInput and CheckOutput are the input and output of [spec.ActivityTrialsCheck].
type (
	CheckInput struct {
		Sweep  string `json:"sweep"`
		Trials []Open `json:"trials"`
	}
	CheckOutput struct {
		Ended []EndedTrial `json:"ended"`
	}
)

// EndedTrial holds the number of a trial that has ended, and its state as a word.
type EndedTrial struct {
	Trial int    `json:"trial"`
	State string `json:"state"`
}

// StateNamed is the inverse of [State.String]. An unknown word counts as a failure.
func StateNamed(word string) State {
	for _, s := range []State{Succeeded, Cancelled, Lost} {
		if s.String() == word {
			return s
		}
	}
	return Failed
}

// Resumption is a sweep execution's initial state, unless it is the first.
type Resumption struct {
	Machine Snapshot `json:"machine"`
	// Open lists the unfinished trials that earlier executions started.
	Open []Open `json:"open,omitempty"`
	// Held lists the trials to start first.
	Held []int `json:"held,omitempty"`
	// Interrupted lists those held trials that are to be stopped.
	Interrupted []int `json:"interrupted,omitempty"`
	// Waited reports whether the sweep has waited for earlier runs.
	Waited bool `json:"waited,omitempty"`
}
