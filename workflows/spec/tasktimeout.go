package spec

import "time"

// WorkflowTaskTimeout is after what time a workflow task of a run, or of a barrier, is
// given out again. A server may lose one on a busy machine (the embedded server does
// not; see deployments/devserver/started.go), and the run stands still until then: for
// 10 seconds by default. With 20 processes waiting for each core the longest workflow
// task of a run of one task took 0.4 s and of one of a thousand tasks 0.5 s; the server
// gives more time to a task that has timed out more than three times. The queue of
// closures has a timeout of its own.
const WorkflowTaskTimeout = 5 * time.Second
