package supervisor

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// API is the supervisor's interface for the Temporal-facing side of a host worker. [Client]
// implements it over their socket.
type API interface {
	// Attach announces a task's new commander and returns the task's processes. It fails with
	// ErrFenced for an old commander.
	Attach(ctx context.Context, r AttachRequest) (AttachReply, error)
	// Start journals and starts a process. For a program that cannot be executed it returns a
	// Process with a StartError in its Exit, not an error. It fails with ErrFenced for an old
	// commander, with ErrReleased after Release, with ErrAlive or ErrNotGranted if the previous
	// process lives or was not granted a successor, with ErrRemains while an earlier one survives
	// SIGKILL, and with ErrCutOff if the contact expired.
	Start(ctx context.Context, r StartRequest) (Process, error)
	// Renew extends the contact of a task's process. It fails with ErrFenced for an old commander.
	Renew(ctx context.Context, r RenewRequest) error
	// Wait returns when the process ends or ctx is done.
	Wait(ctx context.Context, r ProcessRef) (Process, error)
	// Grant journals that this process may have a successor.
	Grant(ctx context.Context, r GrantRequest) error
	// Stop stops processes and returns the tasks that had one alive.
	Stop(ctx context.Context, r StopRequest) (TasksReply, error)
	// Signal sends a signal and returns the tasks that had a process alive.
	Signal(ctx context.Context, r SignalRequest) (TasksReply, error)
	// Lease leases ports.
	Lease(ctx context.Context, r PortLeaseRequest) (PortLeaseReply, error)
	// Release ends a run on this host and returns its processes once they have ended or proved
	// unkillable.
	Release(ctx context.Context, r ReleaseRequest) (ProcessesReply, error)
	// Processes returns the processes of one run or, with a zero key, of all unreleased runs.
	Processes(ctx context.Context, run runkey.Run) (ProcessesReply, error)
	// Unkept returns output that does not fit on its disk, once its program has waited long enough.
	// While a side that has called it stays connected, programs wait until their output is fetched.
	Unkept(ctx context.Context) (UnkeptReply, error)
	// Sample samples what the living processes use. Exits report the samples' maximum.
	Sample(ctx context.Context, r SampleRequest) (SampleReply, error)
	// Controllers returns which [Limits] this host can enforce.
	Controllers(ctx context.Context) (ControllersReply, error)
	// Hello reports the side's version, and that it can use the supervisor.
	Hello(ctx context.Context, version string) error
	// Serving reports that the side serves its queues and its host is a member of the fleet.
	Serving(ctx context.Context) error
	// Leave reports that a side in another process has finished reporting, so that none is started
	// when it exits.
	Leave(ctx context.Context) error
	// Closing returns when the supervisor is about to exit or ctx is done.
	Closing(ctx context.Context) (ClosingReply, error)
}
