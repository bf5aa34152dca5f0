package hostapi

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// NotifyBound is the time that a webhook or a command has for a notice.
const NotifyBound = time.Minute

// NotifyInput is the input of Notify: one notice for one receiver.
type NotifyInput struct {
	Notice       spec.Notice       `json:"notice"`
	Notification spec.Notification `json:"notification"`
	// Dir is the working directory of a command, if the host has it.
	Dir string `json:"dir,omitempty"`
	// Spec is the spec of a signed run: the signature covers all of it.
	Spec *spec.RunSpec `json:"spec,omitempty"`
}
