package hostservice

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/lease"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Pass forwards a heartbeat to the server. It returns [lease.Renewed], [lease.Cancelled] or
// [lease.Gone], or an empty answer if the server does not answer.
type Pass func(ctx context.Context, token []byte, beat spec.Heartbeat) lease.Answer

// Probe reports whether the server answers this host.
type Probe func(ctx context.Context, namespace string) bool

// WitnessPlan is a host's knowledge about a run.
type WitnessPlan struct {
	Generation int
	// Denied holds the host's promises, by task.
	Denied map[string]int64
}

const (
	// passTakes limits how long the server may take to answer another host's heartbeat.
	passTakes = 2 * time.Second
	// probeTakes limits a probe of the server, and probeLasts the time that all questions use its
	// result. So an absent server does not delay questions for long, and a returning one is rarely
	// asked.
	probeTakes, probeLasts = time.Second, time.Second
)

// Witnesses holds a host's memories about the runs on it, and its connections to their other
// hosts.
type Witnesses struct {
	probe Probe
	pass  Pass
	plan  func(runkey.Run) (WitnessPlan, error)
	began int64

	probing  sync.Mutex // held during a probe
	probed   time.Time
	answered bool

	mu      sync.Mutex
	memory  map[generation]*lease.Witness
	clients map[witnessKey]*Client
}

type generation struct {
	run    runkey.Run
	number int
}

type witnessKey struct {
	run                         runkey.Run
	address, token, fingerprint string
}

// NewWitnesses returns the witnesses of a starting host worker.
func NewWitnesses(probe Probe, pass Pass, plan func(runkey.Run) (WitnessPlan, error)) *Witnesses {
	return &Witnesses{
		probe: probe, pass: pass, plan: plan, began: supervisor.BootNanos(),
		memory: map[generation]*lease.Witness{}, clients: map[witnessKey]*Client{},
	}
}

// Answer answers a question from another host of the run.
func (w *Witnesses) Answer(ctx context.Context, run runkey.Run, q Question) lease.Answer {
	if !isTokenOf(q.Token, run.WorkflowID) {
		return lease.Denied
	}
	ctx, cancel := context.WithTimeout(ctx, min(passTakes, q.Within))
	defer cancel()
	if w.answers(run.Namespace) {
		if a := w.pass(ctx, q.Token, q.Beat); a != "" {
			return a
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.plan(run)
	if err != nil || p.Generation != q.Generation || !w.of(run, p).Silent(q.Task, q.Offer, supervisor.BootNanos()) {
		return lease.Denied
	}
	return lease.Silent
}

// answers reports whether the last probe reached the server.
func (w *Witnesses) answers(namespace string) bool {
	w.probing.Lock()
	defer w.probing.Unlock()
	if time.Since(w.probed) >= probeLasts {
		ctx, cancel := context.WithTimeout(context.Background(), probeTakes)
		defer cancel()
		w.answered, w.probed = w.probe(ctx, namespace), time.Now()
	}
	return w.answered
}

// of returns the memory about the plan's generation. w.mu must be held.
func (w *Witnesses) of(run runkey.Run, p WitnessPlan) *lease.Witness {
	g := generation{run, p.Generation}
	m := w.memory[g]
	if m == nil {
		m = lease.NewWitness(w.began, p.Denied)
		w.memory[g] = m
	}
	return m
}

// Deny promises not to extend any of the tasks' leases up to offer, and returns the time since
// this host may have extended one. The promise counts once keep has written it to disk.
func (w *Witnesses) Deny(run runkey.Run, number int, tasks []string, offer int64, keep func() error) (time.Duration, error) {
	w.mu.Lock()
	p, err := w.plan(run)
	if err != nil {
		w.mu.Unlock()
		return 0, err
	}
	p.Generation = number
	m, now := w.of(run, p), supervisor.BootNanos()
	quiet := time.Duration(now - w.began)
	for _, task := range tasks {
		quiet = min(quiet, m.Deny(task, offer, now))
	}
	w.mu.Unlock()
	return quiet, keep()
}

// Ask queries the hosts concurrently, until ctx is done.
func (w *Witnesses) Ask(ctx context.Context, run runkey.Run, others []spec.HostService, q Question) lease.Answer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	each := w.each(ctx, run, others, q)
	var answers []lease.Answer
	for range others {
		answers = append(answers, <-each)
		if a := lease.Combine(answers, len(others)); a != "" {
			return a
		}
	}
	return ""
}

// Reaches reports whether all hosts answer.
func (w *Witnesses) Reaches(ctx context.Context, run runkey.Run, others []spec.HostService) bool {
	each := w.each(ctx, run, others, Question{})
	for range others {
		if <-each == "" {
			return false
		}
	}
	return true
}

// each queries all hosts concurrently. The answer of an unresponsive host is empty.
func (w *Witnesses) each(ctx context.Context, run runkey.Run, others []spec.HostService, q Question) <-chan lease.Answer {
	answers := make(chan lease.Answer, len(others))
	for _, s := range others {
		c := w.clientOf(run, s)
		go func() {
			a, _ := c.Ask(ctx, q)
			answers <- a
		}()
	}
	return answers
}

func (w *Witnesses) clientOf(run runkey.Run, s spec.HostService) *Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := witnessKey{run, s.Address, s.Token, s.Fingerprint}
	c := w.clients[k]
	if c == nil {
		c = NewClient(s, run.RunID)
		w.clients[k] = c
	}
	return c
}

// Forget forgets a run without a plan on this host.
func (w *Witnesses) Forget(run runkey.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for g := range w.memory {
		if g.run == run {
			delete(w.memory, g)
		}
	}
	for k, c := range w.clients {
		if k.run == run {
			c.Close()
			delete(w.clients, k)
		}
	}
}

// workflowOfToken is the field number of the workflow ID in a task token.
const workflowOfToken = 2

// isTokenOf reports whether a task token belongs to a run's workflow or one of its groups: hosts
// forward only their own run's heartbeats.
func isTokenOf(token []byte, workflow string) bool {
	for len(token) > 0 {
		number, kind, n := protowire.ConsumeTag(token)
		if n < 0 {
			return false
		}
		token = token[n:]
		if number == workflowOfToken && kind == protowire.BytesType {
			id, n := protowire.ConsumeBytes(token)
			return n >= 0 && (string(id) == workflow || spec.IsGroupOf(string(id), workflow))
		}
		if n = protowire.ConsumeFieldValue(number, kind, token); n < 0 {
			return false
		}
		token = token[n:]
	}
	return false
}
