package hostservice

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/lease"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

var run = runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "0199-aa"}

// answering is a server's answer. Requests that nobody waits for any more may still read it.
type answering struct{ answer atomic.Value }

func (s *answering) pass(context.Context, []byte, spec.Heartbeat) lease.Answer {
	a, _ := s.answer.Load().(lease.Answer)
	return a
}

func answers(context.Context, string) bool { return true }

// tokenOf returns a workflow's task token.
func tokenOf(workflow string) []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "namespace")
	b = protowire.AppendString(protowire.AppendTag(b, workflowOfToken, protowire.BytesType), workflow)
	return protowire.AppendVarint(protowire.AppendTag(b, 4, protowire.VarintType), 17)
}

func question(offer int64) Question {
	return Question{Task: "worker-1", Generation: 1, Offer: offer, Token: tokenOf("iris"), Within: time.Minute}
}

// The server's answer is the answer. Without one, the host reports no contact, until it has
// promised otherwise; a later host worker keeps the promise.
func TestAnswer(t *testing.T) {
	server, plan := &answering{}, WitnessPlan{Generation: 1}
	plans := func(runkey.Run) (WitnessPlan, error) { return plan, nil }
	w := NewWitnesses(answers, server.pass, plans)
	for _, a := range []lease.Answer{lease.Renewed, lease.Gone, lease.Cancelled, ""} {
		server.answer.Store(a)
		assert.Equal(t, cmp.Or(a, lease.Silent), w.Answer(t.Context(), run, question(5)))
	}
	group := question(5)
	group.Token = tokenOf(spec.TaskGroupWorkflowID("iris", "0200-bb", 1, "b", 0))
	assert.Equal(t, lease.Silent, w.Answer(t.Context(), run, group))
	other := question(5)
	other.Token = tokenOf("another")
	assert.Equal(t, lease.Denied, w.Answer(t.Context(), run, other), "a heartbeat of another run")
	other = question(5)
	other.Generation = 2
	assert.Equal(t, lease.Denied, w.Answer(t.Context(), run, other), "another generation")

	quiet, err := w.Deny(run, 1, []string{"worker-1"}, 5, func() error {
		plan.Denied = map[string]int64{"worker-1": 5}
		return nil
	})
	require.NoError(t, err)
	assert.Less(t, quiet, time.Minute)
	for _, w := range []*Witnesses{w, NewWitnesses(answers, server.pass, plans)} {
		assert.Equal(t, lease.Denied, w.Answer(t.Context(), run, question(5)))
		assert.Equal(t, lease.Silent, w.Answer(t.Context(), run, question(6)), "a later offer")
	}
	failed := errors.New("the disk is full")
	_, err = w.Deny(run, 1, []string{"worker-1"}, 7, func() error { return failed })
	require.ErrorIs(t, err, failed)
}

// A host that asks gets all answers, and reaches all or none.
func TestAsk(t *testing.T) {
	server := &answering{}
	var others []spec.HostService
	var listening []*Server
	for _, name := range []string{"b", "c"} {
		s := must.Get(Listen(Config{Host: name, StateDir: t.TempDir(), Listen: "127.0.0.1"}))(t)
		t.Cleanup(s.Close)
		s.AnswerBy(NewWitnesses(answers, server.pass, func(runkey.Run) (WitnessPlan, error) { return WitnessPlan{Generation: 1}, nil }).Answer)
		go s.Serve(func(context.Context, runkey.Run) {})
		others, listening = append(others, *s.DescribeWitness(run)), append(listening, s)
	}
	w := NewWitnesses(answers, server.pass, nil)
	defer w.Forget(run)
	assert.True(t, w.Reaches(t.Context(), run, others))
	assert.Equal(t, lease.Silent, w.Ask(t.Context(), run, others, question(1)))
	server.answer.Store(lease.Renewed)
	assert.Equal(t, lease.Renewed, w.Ask(t.Context(), run, others, question(1)))
	server.answer.Store(lease.Answer(""))
	listening[1].Close()
	assert.Empty(t, w.Ask(t.Context(), run, others, question(1)))
	assert.False(t, w.Reaches(t.Context(), run, others))
}

// All tasks of a large run ask concurrently while the server hangs. One probe answers all.
func TestManyAskAtOnce(t *testing.T) {
	const tasks = 100
	probes, hangs := make(chan struct{}, tasks), make(chan struct{})
	witness := NewWitnesses(func(ctx context.Context, _ string) bool {
		probes <- struct{}{}
		select {
		case <-ctx.Done():
		case <-hangs:
		}
		return false
	}, func(context.Context, []byte, spec.Heartbeat) lease.Answer {
		t.Error("a heartbeat is passed on to a server that is away")
		return ""
	}, func(runkey.Run) (WitnessPlan, error) { return WitnessPlan{Generation: 1}, nil })
	s := must.Get(Listen(Config{Host: "b", StateDir: t.TempDir(), Listen: "127.0.0.1"}))(t)
	t.Cleanup(s.Close)
	s.AnswerBy(witness.Answer)
	go s.Serve(func(context.Context, runkey.Run) {})
	asking := NewWitnesses(answers, nil, nil)
	defer asking.Forget(run)
	got := make(chan lease.Answer, tasks)
	for range tasks {
		go func() { got <- asking.Ask(t.Context(), run, []spec.HostService{*s.DescribeWitness(run)}, question(1)) }()
	}
	began := time.Now()
	<-probes
	close(hangs)
	for range tasks {
		require.Equal(t, lease.Silent, <-got)
	}
	assert.LessOrEqual(t, len(probes), int(time.Since(began)/probeLasts))
}
