// Package hostapi defines the contract between a run's workflows and its hosts, which consists of
// the hosts' activities, with their inputs and outputs.
package hostapi

import (
	"context"
	"reflect"
	"runtime"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Host is the interface that a host provides to the runs with tasks on it. Each method is an
// activity, registered under the method's name.
type Host interface {
	// Reserve reserves the host for tasks of a run: it fetches the run's files, checks programs
	// and directories, leases ports, and stores the run's plan on disk.
	Reserve(ctx context.Context, in ReserveInput) (ReserveOutput, error)
	// Prepare sends the whole cluster to the host, if the run spans several hosts, after checking
	// that the host reaches rank 0.
	Prepare(ctx context.Context, in PrepareInput) (PrepareOutput, error)
	// Deny promises that the host will not extend leases of another host's tasks.
	Deny(ctx context.Context, in DenyInput) (DenyOutput, error)
	// Answer only answers. A run calls it on a silent host before it resumes offering tasks to that
	// host.
	Answer(ctx context.Context) (None, error)
	// RunTask holds a lease on a task's process for as long as the process lives.
	RunTask(ctx context.Context, in RunTaskInput) (spec.Exit, error)
	spec.Requests
	Tasks
	// Release finishes the run on the host and returns all process exits.
	Release(ctx context.Context, in ReleaseInput) (ReleaseOutput, error)
	// Notify sends a notice about a run, which may have ended, to a webhook or a command.
	Notify(ctx context.Context, in NotifyInput) (None, error)
}

// Activity is a method of [Host], such as Host.Reserve. It provides the type checks that the SDK
// lacks. Without them, a host would decode an input of the wrong type to an empty struct.
type Activity[In, Out any] = func(Host, context.Context, In) (Out, error)

// Name returns an activity's registered name.
func Name[In, Out any](a Activity[In, Out]) string { return MethodName(a) }

// MethodName is [Name] for methods of interfaces embedded in [Host].
func MethodName(a any) string {
	full := runtime.FuncForPC(reflect.ValueOf(a).Pointer()).Name()
	return full[strings.LastIndexByte(full, '.')+1:]
}

// None is an activity's output if there is no result.
type None struct{}
