package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// slow is a call that returns some time after its context is done. It sends to entered when it
// is called and to ending when the context is done, and returns once let is closed.
type slow struct{ entered, ending, let chan struct{} }

func newSlow() *slow {
	return &slow{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})}
}

func (s *slow) call(ctx context.Context) error {
	select {
	case s.entered <- struct{}{}:
	default:
	}
	<-ctx.Done()
	select {
	case s.ending <- struct{}{}:
	default:
	}
	<-s.let
	return ctx.Err()
}

// slowSupervisor is a supervisor whose processes do not end. A nil call does not delay.
type slowSupervisor struct {
	supervisor.API
	wait, stop *slow
}

func (s *slowSupervisor) Wait(ctx context.Context, _ supervisor.ProcessRef) (supervisor.Process, error) {
	if s.wait == nil {
		<-ctx.Done()
		return supervisor.Process{}, ctx.Err()
	}
	return supervisor.Process{}, s.wait.call(ctx)
}

func (s *slowSupervisor) Stop(ctx context.Context, _ supervisor.StopRequest) (supervisor.TasksReply, error) {
	if s.stop == nil {
		return supervisor.TasksReply{}, nil
	}
	return supervisor.TasksReply{}, s.stop.call(ctx)
}

func (*slowSupervisor) Sample(context.Context, supervisor.SampleRequest) (supervisor.SampleReply, error) {
	return supervisor.SampleReply{}, nil
}

// slowServer accepts heartbeats, at once if beat is nil.
type slowServer struct {
	Server
	beat *slow
}

func (s *slowServer) RecordActivityHeartbeat(ctx context.Context, _ []byte, _ ...any) error {
	if s.beat == nil {
		return nil
	}
	return s.beat.call(ctx)
}

// A host that ends waits for the calls of its leases, and ends the leases, so that no lease is
// at work when the next host worker starts.
func TestTheEndOfAHostWaitsForItsLeases(t *testing.T) {
	for name, cancelled := range map[string]bool{"wait": false, "confirm": true, "stop": true} {
		t.Run(name, func(t *testing.T) {
			last := newSlow()
			s, server := &slowSupervisor{}, &slowServer{}
			switch name {
			case "wait":
				s.wait = last
			case "confirm":
				server.beat = last
			case "stop":
				s.stop = last
			}
			h, err := NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Server: server, Log: zap.NewNop()})
			require.NoError(t, err)
			held := make(chan error, 1)
			over := make(chan struct{})
			attend := func(ctx context.Context) error {
				ctx, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				if cancelled {
					cancel(temporal.NewCanceledError())
				}
				l := &taskLease{Host: h, ctx: ctx, plan: &plan{Spec: (&spec.RunSpec{}).WithDefaults()}, key: runkey.Task{Task: "worker-0"}}
				held <- l.attend(&supervisor.Process{Key: l.key})
				return nil
			}
			go func() {
				defer close(over)
				(&serving{t: t}).do(attend)
			}()
			await(t, last.entered, name+" is asked")
			closed := make(chan struct{})
			go func() {
				h.Close()
				close(closed)
			}()
			select {
			case <-last.ending:
			case <-closed:
				t.Fatal("the host is closed, and somebody is at work")
			}
			select {
			case err := <-held:
				assert.ErrorIs(t, err, errAway)
			case <-time.After(time.Minute):
				t.Fatal("the lease is held")
			}
			select {
			case <-closed:
				t.Fatal("the host is closed, and somebody is at work")
			default:
			}
			close(last.let)
			await(t, closed, "the host is closed")
			await(t, over, "the activity is over")
		})
	}
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatal("not within a minute: " + what)
	}
}
