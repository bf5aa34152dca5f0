package hostapi

import "github.com/clusterrun/clusterrun/workflows/spec"

// NotifyInput is the input of Notify.
type NotifyInput struct {
	Notice       spec.Notice       `json:"notice"`
	Notification spec.Notification `json:"notification"`
	// Spec is set for a signed run, because the signature covers the whole spec.
	Spec *spec.RunSpec `json:"spec,omitempty"`
}
