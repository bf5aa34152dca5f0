package spec

import "math"

// Usage is what processes used of their hosts.
type Usage struct {
	UserSeconds   float64 `json:"user_seconds,omitempty"`
	SystemSeconds float64 `json:"system_seconds,omitempty"`
	// MaxRSSBytes is the most memory that a process and its descendants were seen to have at
	// once, or that one of them had.
	MaxRSSBytes int64 `json:"max_rss_bytes,omitempty"`
	// GPUSeconds counts a second of a GPU in full use as one.
	GPUSeconds        float64 `json:"gpu_seconds,omitempty"`
	MaxGPUMemoryBytes int64   `json:"max_gpu_memory_bytes,omitempty"`
	// OutputBytes is the size of the files of stdout and stderr.
	OutputBytes int64 `json:"output_bytes,omitempty"`
}

// CPUSeconds returns the processor time.
func (u Usage) CPUSeconds() float64 { return u.UserSeconds + u.SystemSeconds }

// With returns the usage of both: times and bytes are summed, and of memory it is the larger.
func (u Usage) With(v Usage) Usage {
	return Usage{
		UserSeconds: milliseconds(u.UserSeconds + v.UserSeconds), SystemSeconds: milliseconds(u.SystemSeconds + v.SystemSeconds),
		MaxRSSBytes: max(u.MaxRSSBytes, v.MaxRSSBytes),
		GPUSeconds:  milliseconds(u.GPUSeconds + v.GPUSeconds), MaxGPUMemoryBytes: max(u.MaxGPUMemoryBytes, v.MaxGPUMemoryBytes),
		OutputBytes: u.OutputBytes + v.OutputBytes,
	}
}

// milliseconds rounds to them: a sum of fractions is not one of tenths.
func milliseconds(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }

// LiveUsage is what a living process and its descendants use: what they have used since its
// start, and what they use now. A host looks every ten seconds.
type LiveUsage struct {
	Usage
	// CPUs and GPUs are how many it keeps busy, such as 1.5, as of the last look.
	CPUs           float64 `json:"cpus"`
	GPUs           float64 `json:"gpus,omitempty"`
	RSSBytes       int64   `json:"rss_bytes"`
	GPUMemoryBytes int64   `json:"gpu_memory_bytes,omitempty"`
	// Processes counts them.
	Processes int `json:"processes"`
	// SilentSeconds is for how long the task has been silent, once that is the silence of its
	// spec.
	SilentSeconds int `json:"silent_seconds,omitempty"`
}
