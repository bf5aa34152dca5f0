package workers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/retry"
	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// NamesakeError is returned where another host worker serves a queue under the same name:
// tasks that are pinned to the name would go to either.
type NamesakeError struct{ Host, Instance, Queue string }

func (e *NamesakeError) Error() string {
	return fmt.Sprintf("a host worker with the name %s serves the queue %s already (instance %s); give this one another name with --host-name, or end that one",
		e.Host, e.Queue, e.Instance)
}

// identity returns how the server knows a side.
func identity(host, instance string) string {
	return fmt.Sprintf("%d@%s/%s", os.Getpid(), host, instance)
}

// instanceOf returns the instance of the side with that identity.
func instanceOf(identity string) string {
	return identity[strings.LastIndexByte(identity, '/')+1:]
}

const (
	// pollLasts is how long a poll lasts, at most: who has not polled for so long is gone.
	pollLasts = 75 * time.Second
	// probeTakes is how long one that polled may take to say that it is there.
	probeTakes = 3 * time.Second
	// namesakeAgain is how often a side looks whether it can have the name.
	namesakeAgain = 5 * time.Second
)

// checkName returns a [NamesakeError] if another instance than this one serves the queue
// under the name, and answers. Where the server does not tell who polls, nobody is refused.
func checkName(ctx context.Context, c client.Client, queue, host, instance string) error {
	d, _ := c.DescribeTaskQueue(ctx, spec.HostQueue(queue, host), enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	seen := map[string]bool{instance: true}
	for _, p := range d.GetPollers() {
		other := instanceOf(p.GetIdentity())
		if seen[other] || time.Since(p.GetLastAccessTime().AsTime()) > pollLasts {
			continue
		}
		seen[other] = true
		if lives(ctx, c, spec.InstanceQueue(queue, host, other)) {
			return &NamesakeError{Host: host, Instance: other, Queue: queue}
		}
	}
	return nil
}

// lives asks a host worker whether it is there.
func lives(ctx context.Context, c client.Client, queue string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTakes+time.Second)
	defer cancel()
	h, err := c.ExecuteActivity(ctx, client.StartActivityOptions{
		ID: "probe-" + rand.Text(), TaskQueue: queue, ScheduleToCloseTimeout: probeTakes,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}, Summary: "is there a host worker of that name",
	}, spec.ActivityProbe)
	if err != nil {
		return false
	}
	err = h.Get(ctx, nil)
	var app *temporal.ApplicationError
	return err == nil || errors.As(err, &app) // it answers, whatever
}

// Probe is an activity by which a host worker shows that it is there.
func (s *side) Probe(context.Context) error { return nil }

// awaitName returns when no other host worker has the name.
func (s *side) awaitName(ctx context.Context) {
	for ctx.Err() == nil && checkName(ctx, s.client, s.Queue, s.Host, s.supervisor.Instance()) != nil {
		_ = retry.Sleep(ctx, namesakeAgain)
	}
}

// CheckName returns a [NamesakeError] if another host worker has the name of the one that is
// about to start with these options.
func (o Options) CheckName(ctx context.Context, c client.Client) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	return checkName(ctx, c, o.Queue, o.Host, supervisor.InstanceIn(o.StateDir))
}
