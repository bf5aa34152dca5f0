package closurequeue

import "github.com/clusterrun/clusterrun/workflows/closure"

// Carry is for tests from outside.
type Carry = carry

// Pack is for tests from outside.
func Pack(executions []closure.QueueExecution) (Carry, error) { return pack(executions) }

// Unpack is for tests from outside.
func (c carry) Unpack() ([]closure.QueueExecution, error) { return c.unpack() }
