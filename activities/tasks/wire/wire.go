// Package wire defines the messages between a task and its host: the task API's paths, requests
// and answers. It is a contract, described in openapi.yaml. A test compares the two.
package wire

// SocketVar is the environment variable for a task's socket path.
const SocketVar = "CLUSTERRUN_SOCKET"

// Paths of the API. A barrier's escaped name follows PathBarriers.
const (
	PathTask     = "/v1/task"
	PathCluster  = "/v1/cluster"
	PathResult   = "/v1/result"
	PathError    = "/v1/error"
	PathProgress = "/v1/progress"
	PathStop     = "/v1/stop"
	PathBarriers = "/v1/barriers/"
)

// Limits, in bytes.
const (
	// MaxResult limits a task's return value.
	MaxResult = 256 << 10
	// MaxName limits a barrier's name, and MaxKey an arrival's key.
	MaxName = 200
	MaxKey  = 100
	// MaxValue limits an arrival's value.
	MaxValue = 64 << 10
	// MaxMessage and MaxTraceback limit what is kept of an error.
	MaxMessage   = 64 << 10
	MaxTraceback = 256 << 10
	// MaxStopText limits the reason for a stop that is sent to the run, and its error's message.
	// MaxStopTraceback limits the traceback.
	MaxStopText      = 8 << 10
	MaxStopTraceback = 32 << 10
)

// Task describes the calling task.
type Task struct {
	// Run is the run ID, and Execution is the Temporal run ID of its first execution.
	Run            string `json:"run"`
	Execution      string `json:"execution"`
	Task           string `json:"task"`
	Type           string `json:"type"`
	Index          int    `json:"index"`
	Rank           int    `json:"rank"`
	LocalRank      int    `json:"local_rank"`
	WorldSize      int    `json:"world_size"`
	LocalWorldSize int    `json:"local_world_size"`
	RestartCount   int    `json:"restart_count"`
	Generation     int    `json:"generation"`
	Host           string `json:"host"`
	Address        string `json:"address"`
}

// Member is a task of the cluster.
type Member struct {
	Task      string `json:"task"`
	Type      string `json:"type"`
	Index     int    `json:"index"`
	Rank      int    `json:"rank"`
	LocalRank int    `json:"local_rank"`
	Host      string `json:"host"`
	// Address is the task's address for other tasks, as host:port.
	Address string `json:"address"`
}

// Cluster lists all tasks, in rank order.
type Cluster struct {
	Members []Member `json:"members"`
}

// Error is an error that a program reports about itself.
type Error struct {
	// Kind is the error's class, such as ValueError.
	Kind      string `json:"kind,omitempty"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
	// Timestamp is the time of the error, in seconds since 1970; 0 means now.
	Timestamp float64 `json:"timestamp,omitempty"`
}

// Progress is a task's progress.
type Progress struct {
	Current float64 `json:"current"`
	// Total is the final value of Current, or 0 if it is unknown.
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
	// Metrics are up to eight numbers by name, such as a loss.
	Metrics map[string]float64 `json:"metrics,omitempty"`
}

// Arrive is a task's arrival at a barrier.
type Arrive struct {
	// Timeout is the maximum time to wait, as a Go duration. Empty means no limit.
	Timeout string `json:"timeout,omitempty"`
	// Participants lists task names, and types for all their tasks. Empty means all tasks of the
	// spec.
	Participants []string `json:"participants,omitempty"`
	// Local reports whether the host may release the barrier on its own.
	Local bool `json:"local,omitempty"`
	// Value is sent to all participants with the release.
	Value string `json:"value,omitempty"`
	// Key identifies this arrival. A retry sends the same key.
	Key string `json:"key,omitempty"`
}

// Released answers an arrival when its barrier is released.
type Released struct {
	// Round is the barrier's round, counted from 1.
	Round int `json:"round"`
	// Index is the task's position among the participants, from 0.
	Index int `json:"index"`
	// Parties is the number of participants.
	Parties int `json:"parties"`
	// Values are the participants' values, in their order. If empty, no participant brought a
	// value.
	Values []string `json:"values,omitempty"`
}

// Stop is a task's request that all tasks of the run stop.
type Stop struct {
	// Key identifies this request. A retry sends the same key.
	Key    string `json:"key,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Error is the reason, if something went wrong.
	Error *Error `json:"error,omitempty"`
}

// Stopping is the state of stopping the run's tasks together.
type Stopping struct {
	// Seq grows with every stop and every clear. A state with a lower number is older.
	Seq int `json:"seq"`
	// Stop reports whether the tasks are stopping together. If not, all fields except Seq and
	// Notice are empty.
	Stop bool `json:"stop"`
	// By is the task that asked first, or empty if an operator did.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Error is the first error. It decides the run's result unless Clean is set because its kind
	// means a clean stop.
	Error *Error `json:"error,omitempty"`
	Clean bool   `json:"clean,omitempty"`
	// Deadline is the time at which running tasks are stopped, in RFC 3339, and Left is the time
	// from the answer until then, in seconds.
	Deadline string  `json:"deadline,omitempty"`
	Left     float64 `json:"left_seconds,omitempty"`
	// Notice is set once the task is notified that it will be stopped, even without a stop of all
	// tasks.
	Notice *Notice `json:"notice,omitempty"`
}

// Notice is the time that a task has left. Deadline and Left are as in [Stopping].
type Notice struct {
	Reason   string  `json:"reason"`
	Deadline string  `json:"deadline"`
	Left     float64 `json:"left_seconds"`
}

// Done is the answer to a request that returns nothing.
type Done struct {
	OK bool `json:"ok"`
}

// Withdrawn answers the withdrawal of an arrival.
type Withdrawn struct {
	Withdrawn bool `json:"withdrawn"`
	// Released is set if it was too late because all had arrived.
	Released *Released `json:"released,omitempty"`
}

// Failure answers a request that failed.
type Failure struct {
	Error Problem `json:"error"`
}

// Problem is why a request failed.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Field is the invalid field of the request.
	Field string `json:"field,omitempty"`
	// Barrier lists the arrived and missing tasks of a broken barrier.
	Barrier *Standing `json:"barrier,omitempty"`
}

// Standing is the state of a barrier's round when it broke.
type Standing struct {
	Name    string   `json:"name"`
	Round   int      `json:"round"`
	Arrived []string `json:"arrived"`
	Missing []string `json:"missing"`
	// Since is the time of the first arrival, in RFC 3339, by the clock of the server or host that
	// keeps the round. Waited is the wait in seconds of a monotonic clock: since Since at a local
	// barrier, otherwise since this task's arrival.
	Since  string  `json:"since"`
	Waited float64 `json:"waited_seconds"`
}

// Codes of problems.
const (
	CodeInvalid          = "invalid"
	CodeNotFound         = "not_found"
	CodeMethod           = "method_not_allowed"
	CodeTooLarge         = "too_large"
	CodeTooSlow          = "too_slow"
	CodeNoFiles          = "no_files"
	CodeInternal         = "internal"
	CodeBarrierTimeout   = "barrier_timeout"
	CodeBarrierBroken    = "barrier_broken"
	CodeBarrierMismatch  = "barrier_mismatch"
	CodeAlreadyWaiting   = "already_waiting"
	CodeNotAParticipant  = "not_a_participant"
	CodeNotLocal         = "not_local"
	CodeNotThere         = "not_implemented"
	CodeBarrierWithdrawn = "barrier_withdrawn"
	// CodeStopRefused means that the run refused the request.
	CodeStopRefused = "stop_refused"
	// CodeOver means that the run, or the task's generation, is over on this host.
	CodeOver = "over"
	// CodeUnavailable means that the run did not answer in time; retry.
	CodeUnavailable = "unavailable"
)
