package supervisor

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// API is the interface of the supervisor for the Temporal-facing side of a host worker.
// [Client] implements it over the socket between the two.
type API interface {
	// Attach announces a new commander of a task and returns the task's processes.
	// It fails with ErrFenced for an old commander.
	Attach(ctx context.Context, r AttachRequest) (AttachReply, error)
	// Start journals and starts a process. For a program that cannot be executed it returns a
	// Process whose Exit has a StartError, not an error. It fails with ErrFenced for an old
	// commander, with ErrReleased after Release, with ErrAlive or ErrNotGranted if the
	// previous process lives or was not granted a successor, with ErrRemains as long as SIGKILL
	// has not ended an earlier one, and with ErrCutOff if its contact is over.
	Start(ctx context.Context, r StartRequest) (Process, error)
	// Renew extends the contact of the process of a task. It fails with ErrFenced for an
	// old commander.
	Renew(ctx context.Context, r RenewRequest) error
	// Wait returns once the process or ctx has ended.
	Wait(ctx context.Context, r ProcessRef) (Process, error)
	// Grant journals that the next process may be started after this one.
	Grant(ctx context.Context, r GrantRequest) error
	// Stop stops processes and returns the tasks that had one alive.
	Stop(ctx context.Context, r StopRequest) (TasksReply, error)
	// Signal sends a signal and returns the tasks that had a process alive.
	Signal(ctx context.Context, r SignalRequest) (TasksReply, error)
	// Lease leases ports.
	Lease(ctx context.Context, r PortLeaseRequest) (PortLeaseReply, error)
	// Release ends a run on this host and returns its processes, once
	// they have ended or turned out to be unkillable.
	Release(ctx context.Context, r ReleaseRequest) (ProcessesReply, error)
	// Processes returns the processes of one run or, with a zero key, of all runs that are not
	// released.
	Processes(ctx context.Context, run runkey.Run) (ProcessesReply, error)
	// Unkept returns output that does not fit on its disk, once its program has waited for room long
	// enough. For as long as a side is connected that has called it, programs wait until their output
	// is fetched.
	Unkept(ctx context.Context) (UnkeptReply, error)
	// Sample samples what the living processes use. Exits have the maximum of the samples.
	Sample(ctx context.Context, r SampleRequest) (SampleReply, error)
	// Controllers returns which [Limits] can be enforced here.
	Controllers(ctx context.Context) (ControllersReply, error)
	// Serving reports that the side serves its queues, and that its host is a member of the
	// fleet.
	Serving(ctx context.Context) error
	// Leave reports that a side in another process has nothing more to report: when it
	// ends, no other is started.
	Leave(ctx context.Context) error
	// Closing returns when the supervisor is about to end, or when ctx is done.
	Closing(ctx context.Context) (ClosingReply, error)
}
