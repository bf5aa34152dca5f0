// Package hostapi is the contract between the workflows of a run and the hosts that carry it
// out: the activities of a host, with their inputs and outputs.
package hostapi

import (
	"context"
	"reflect"
	"runtime"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Host is the interface of a host for the runs that have tasks on it. Each method is an
// activity, and its name is the registered name.
type Host interface {
	// Reserve reserves the host for tasks of a run: it fetches the run's files, checks programs
	// and directories, leases ports, and keeps the plan of the run on disk.
	Reserve(ctx context.Context, in ReserveInput) (ReserveOutput, error)
	// Prepare gives the host the whole cluster, if it spans several hosts, after rank 0 is
	// reached.
	Prepare(ctx context.Context, in PrepareInput) (PrepareOutput, error)
	// Deny promises that the host extends no more leases of tasks of another host.
	Deny(ctx context.Context, in DenyInput) (DenyOutput, error)
	// Answer only answers. A run asks a silent host before it offers tasks to it again.
	Answer(ctx context.Context) (None, error)
	// RunTask holds a lease on the process of a task for as long as it lives.
	RunTask(ctx context.Context, in RunTaskInput) (spec.Exit, error)
	spec.Requests
	Tasks
	// Release ends the run on the host and returns every exit of every process.
	Release(ctx context.Context, in ReleaseInput) (ReleaseOutput, error)
	// Notify sends a notice about a run, which may have ended, to a webhook or a command.
	Notify(ctx context.Context, in NotifyInput) (None, error)
}

// Activity is a method of [Host], such as Host.Reserve. The SDK does not check the types of an
// activity: an input of the wrong type decodes to an empty struct on the host.
type Activity[In, Out any] = func(Host, context.Context, In) (Out, error)

// Name returns the registered name of an activity.
func Name[In, Out any](a Activity[In, Out]) string { return MethodName(a) }

// MethodName is [Name] for a method of an interface that [Host] includes.
func MethodName(a any) string {
	full := runtime.FuncForPC(reflect.ValueOf(a).Pointer()).Name()
	return full[strings.LastIndexByte(full, '.')+1:]
}

// None is the output of an activity that only succeeds or fails.
type None struct{}
