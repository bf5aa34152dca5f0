// Package hostapi is the contract between the workflows of a run and the hosts that carry it
// out: the activities of a host by name, and what each is told and answers.
//
// A file for each activity. An activity that carries out a request of an operator embeds the
// request, and says which generation it is for.
package hostapi

// Activity is the registered name of an activity, with the types of its input and output.
// The SDK checks neither: an input of the wrong type decodes to an empty struct on the host.
type Activity[In, Out any] string

// None is the output of an activity that only succeeds or fails.
type None struct{}

// Group is a generation of a run: an activity that comes late reaches nothing of the next one.
type Group struct {
	// Run is the execution by which hosts know the run, if it is not the calling one.
	Run string `json:"run,omitempty"`
	// Generation counts the launches of the whole group, from 0.
	Generation int `json:"generation,omitempty"`
}
