package workflows

import "github.com/clusterrun/clusterrun/workflows/closure"

// QueueCarry is for tests from outside.
type QueueCarry = queueCarry

// Pack is for tests from outside.
func Pack(executions []closure.QueueExecution) (QueueCarry, error) { return pack(executions) }

// Unpack is for tests from outside.
func (c queueCarry) Unpack() ([]closure.QueueExecution, error) { return c.unpack() }
