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
	// Start journals and starts a process. If the program cannot be executed, Start does not return
	// an error, but a Process with a StartError in its Exit. It fails with ErrFenced for an old
	// commander, ErrReleased after Release, ErrAlive if the previous process is alive,
	// ErrNotGranted if that process was not granted a successor, ErrRemains while an earlier
	// process survives SIGKILL, and ErrCutOff if the contact has expired.
	Start(ctx context.Context, r StartRequest) (Process, error)
	// Renew extends the contact of a task's process with the server. It fails with ErrFenced for an
	// old commander.
	Renew(ctx context.Context, r RenewRequest) error
	// Wait returns when the process has ended or ctx is done.
	Wait(ctx context.Context, r ProcessRef) (Process, error)
	// Grant journals that this process may have a successor.
	Grant(ctx context.Context, r GrantRequest) error
	// Stop stops processes and returns the tasks that had one alive.
	Stop(ctx context.Context, r StopRequest) (TasksReply, error)
	// Signal sends a signal and returns the tasks that had a process alive.
	Signal(ctx context.Context, r SignalRequest) (TasksReply, error)
	// Lease leases ports.
	Lease(ctx context.Context, r PortLeaseRequest) (PortLeaseReply, error)
	// Release ends a run on this host. It returns the run's processes once they have ended or have
	// proved unkillable.
	Release(ctx context.Context, r ReleaseRequest) (ProcessesReply, error)
	// Processes returns the processes of one run or, with a zero key, of all unreleased runs.
	Processes(ctx context.Context, run runkey.Run) (ProcessesReply, error)
	// Unkept returns output that does not fit on its disk, once the program that wrote it has
	// waited long enough. Once a side has called Unkept, programs wait until their output is
	// fetched, for as long as that side remains connected.
	Unkept(ctx context.Context) (UnkeptReply, error)
	// Sample samples what the living processes use. A process's exit reports the maximum over its
	// samples.
	Sample(ctx context.Context, r SampleRequest) (SampleReply, error)
	// Controllers returns which [Limits] this host can enforce.
	Controllers(ctx context.Context) (ControllersReply, error)
	// Hello reports the side's version, and that it can use the supervisor.
	Hello(ctx context.Context, version string) error
	// Serving reports that the side serves its queues and its host is a member of the fleet.
	Serving(ctx context.Context) error
	// Leave reports that a side in another process has finished reporting, so that no other side is
	// started when it exits.
	Leave(ctx context.Context) error
	// Closing returns when the supervisor is about to exit or ctx is done.
	Closing(ctx context.Context) (ClosingReply, error)
}
