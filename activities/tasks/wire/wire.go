// Package wire defines the messages between a task and its host: the paths, the requests and
// the answers of the task API. It is a contract; openapi.yaml describes it, and a test
// compares the two.
package wire

// SocketVar is the environment variable with the path of a task's socket.
const SocketVar = "CLUSTERRUN_SOCKET"

// Paths of the API. A barrier's name, escaped, follows PathBarriers.
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
	// MaxResult bounds the value that a task returns.
	MaxResult = 256 << 10
	// MaxName bounds the name of a barrier, and MaxKey the key of an arrival.
	MaxName = 200
	MaxKey  = 100
	// MaxValue bounds the value of an arrival.
	MaxValue = 64 << 10
	// MaxMessage and MaxTraceback bound what is kept of an error.
	MaxMessage   = 64 << 10
	MaxTraceback = 256 << 10
	// MaxStopText bounds the reason of a stop that is sent to the run, and the message of its
	// error; MaxStopTraceback bounds the traceback.
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

// Member is one task of the cluster.
type Member struct {
	Task      string `json:"task"`
	Type      string `json:"type"`
	Index     int    `json:"index"`
	Rank      int    `json:"rank"`
	LocalRank int    `json:"local_rank"`
	Host      string `json:"host"`
	// Address is the address at which other tasks reach the task, as host:port.
	Address string `json:"address"`
}

// Cluster has all tasks, in rank order.
type Cluster struct {
	Members []Member `json:"members"`
}

// Error is an error that a program reports about itself.
type Error struct {
	// Kind is the kind of the error, such as ValueError.
	Kind    string `json:"kind,omitempty"`
	Message string `json:"message"`
	// Traceback is the traceback of the error.
	Traceback string `json:"traceback,omitempty"`
	// Timestamp is the time of the error, in seconds since 1970; 0 means now.
	Timestamp float64 `json:"timestamp,omitempty"`
}

// Progress is the progress of a task.
type Progress struct {
	Current float64 `json:"current"`
	// Total is the final value of Current, or 0 if it is unknown.
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

// Arrive is a task's arrival at a barrier.
type Arrive struct {
	// Timeout is the longest time to wait, as a Go duration. Empty means no limit.
	Timeout string `json:"timeout,omitempty"`
	// Participants are names of tasks, and types for all their tasks. If empty, they are all
	// tasks of the spec.
	Participants []string `json:"participants,omitempty"`
	// Local reports whether the host may release the barrier by itself.
	Local bool `json:"local,omitempty"`
	// Value is a text that all others get with the release.
	Value string `json:"value,omitempty"`
	// Key names this arrival: a repeated arrival has the same key.
	Key string `json:"key,omitempty"`
}

// Released is the answer to an arrival whose barrier was released.
type Released struct {
	// Round counts the rounds of the barrier, from 1.
	Round int `json:"round"`
	// Index is the place of the task among the participants, from 0.
	Index int `json:"index"`
	// Parties is the number of participants.
	Parties int `json:"parties"`
	// Values are the values of the participants, in their order. If empty, no participant has
	// brought a value.
	Values []string `json:"values,omitempty"`
}

// Stop is a task's request that all tasks of the run stop.
type Stop struct {
	// Key names this request: a repeated request has the same key.
	Key    string `json:"key,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Error is the reason, if something went wrong.
	Error *Error `json:"error,omitempty"`
}

// Stopping is the state of stopping the tasks of the run together.
type Stopping struct {
	// Seq grows with every stop and every clear. A state with a lower number is older.
	Seq int `json:"seq"`
	// Stop reports whether the tasks are stopping together. If not, the rest is empty, except
	// for Notice.
	Stop bool `json:"stop"`
	// By is the task that asked first, or empty for an operator.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Error is the first error, which is the verdict of the run unless Clean is set because
	// its kind means a clean stop.
	Error *Error `json:"error,omitempty"`
	Clean bool   `json:"clean,omitempty"`
	// Deadline is the time at which tasks that still live are stopped, in RFC 3339, and Left is
	// the time from the answer until then, in seconds.
	Deadline string  `json:"deadline,omitempty"`
	Left     float64 `json:"left_seconds,omitempty"`
	// Notice is set once the task has notice that it will be stopped, also without a stop
	// together.
	Notice *Notice `json:"notice,omitempty"`
}

// Notice says until when a task may run. Deadline and Left are as in [Stopping].
type Notice struct {
	Reason   string  `json:"reason"`
	Deadline string  `json:"deadline"`
	Left     float64 `json:"left_seconds"`
}

// Done is the answer to a request that returns nothing.
type Done struct {
	OK bool `json:"ok"`
}

// Withdrawn is the answer to the withdrawal of an arrival.
type Withdrawn struct {
	Withdrawn bool `json:"withdrawn"`
	// Released is set if it was too late: the round had all participants.
	Released *Released `json:"released,omitempty"`
}

// Failure is the answer to a request that failed.
type Failure struct {
	Error Problem `json:"error"`
}

// Problem is the reason for which a request failed.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Field is the field of the request that is wrong.
	Field string `json:"field,omitempty"`
	// Barrier has the arrived and missing tasks of a barrier that broke.
	Barrier *Standing `json:"barrier,omitempty"`
}

// Standing is the state of a round of a barrier when it broke.
type Standing struct {
	Name    string   `json:"name"`
	Round   int      `json:"round"`
	Arrived []string `json:"arrived"`
	Missing []string `json:"missing"`
	// Since is the time at which the first task arrived, in RFC 3339, by the clock of the
	// server or host that keeps the round. Waited is the length of the wait in seconds of a
	// clock that is never set: since Since at a local barrier, and since this task's arrival at
	// others.
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
	// CodeStopRefused means that the run refuses the request.
	CodeStopRefused = "stop_refused"
	// CodeOver means that the run, or the generation of the task, is over on this host.
	CodeOver = "over"
	// CodeUnavailable means that the run did not answer in time; ask again.
	CodeUnavailable = "unavailable"
)
