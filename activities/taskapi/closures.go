package taskapi

import (
	"context"
	"errors"

	"github.com/clusterrun/clusterrun/activities/taskapi/internal/wire"
)

// Closures has the processes of tasks call closures.
type Closures interface {
	// Next takes what a process of a task has done, and answers with what is next for
	// it. It waits as long as the request says, and until ctx ends. Its error is
	// [ErrClosuresAway] where the process is to ask again.
	Next(ctx context.Context, by ID, in ClosuresRequest) (ClosuresAnswer, error)
}

// ErrClosuresAway is the answer of a host that is being started again.
var ErrClosuresAway = errors.New("the host takes no outcomes and gives no closures at the moment; ask again")

// What a serving process and its host say to each other.
type (
	ClosuresRequest = wire.ClosuresRequest
	ClosuresAnswer  = wire.ClosuresAnswer
	Call            = wire.Call
	CallOutcome     = wire.CallOutcome
	CallError       = wire.CallError
	CallResource    = wire.CallResource
	CallCancel      = wire.CallCancel
)
