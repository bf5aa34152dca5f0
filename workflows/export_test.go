package workflows

import "github.com/clusterrun/clusterrun/workflows/spec"

// QueueCarry is for tests from outside.
type QueueCarry = queueCarry

// Pack is for tests from outside.
func Pack(executions []spec.QueueExecution) (QueueCarry, error) { return pack(executions) }

// Unpack is for tests from outside.
func (c queueCarry) Unpack() ([]spec.QueueExecution, error) { return c.unpack() }
