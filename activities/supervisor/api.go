package supervisor

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/runkey"
)

// API is the interface of the supervisor for the Temporal-facing side of a host worker.
// [Client] implements it over the socket between the two.
type API interface {
	// Attach announces a new commander of a task and returns the task's processes.
	// It fails with ErrFenced for an old commander.
	Attach(ctx context.Context, r AttachRequest) (AttachReply, error)
	// Start journals and starts a process. A program that cannot be executed
	// is a Process with an Exit that has a StartError, not an error. It fails
	// with ErrFenced for an old commander, with ErrReleased after Release, with
	// ErrAlive or ErrNotGranted if the process before lives or was not granted a
	// successor, and with ErrCutOff if its contact is over.
	Start(ctx context.Context, r StartRequest) (Process, error)
	// Renew extends the contact of the process of a task. It fails with ErrFenced for an
	// old commander.
	Renew(ctx context.Context, r RenewRequest) error
	// Wait returns once the process has ended, or ctx has.
	Wait(ctx context.Context, r ProcessRef) (Process, error)
	// Grant journals that the process after this one may be started.
	Grant(ctx context.Context, r GrantRequest) error
	// Stop asks processes to end and returns the tasks that had one alive.
	Stop(ctx context.Context, r StopRequest) (TasksReply, error)
	// Signal sends a signal and returns the tasks that had a process alive.
	Signal(ctx context.Context, r SignalRequest) (TasksReply, error)
	// Lease leases ports.
	Lease(ctx context.Context, r PortLeaseRequest) (PortLeaseReply, error)
	// Release ends a run on this host and returns its processes, once
	// they have ended or turned out to be unkillable.
	Release(ctx context.Context, r ReleaseRequest) (ProcessesReply, error)
	// Processes lists those of one run, or with a zero key those of all runs
	// that were not released.
	Processes(ctx context.Context, run runkey.Run) (ProcessesReply, error)
	// Sample looks at what the living processes use. Exits have the most of what it saw.
	Sample(ctx context.Context, r SampleRequest) (SampleReply, error)
	// Controllers returns which [Limits] can be enforced here.
	Controllers(ctx context.Context) (ControllersReply, error)
	// Serving tells that the side serves its queues, and its host is a member of the fleet.
	Serving(ctx context.Context) error
	// Leave tells that a side in the owner's process has nothing more to report: when it ends, no
	// other is started.
	Leave(ctx context.Context) error
	// Closing returns when the supervisor is about to end, or ctx has.
	Closing(ctx context.Context) (ClosingReply, error)
}
