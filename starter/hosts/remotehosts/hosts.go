package remotehosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Config configures how hosts are reached.
type Config struct {
	// Agent is the launch agent with its arguments.
	Agent []string
	// Version is our program's version, which programs on hosts must share.
	Version string
	// Program is our own program's path.
	Program string
	// Dial connects to the Temporal server.
	Dial func(context.Context) (net.Conn, error)
}

// Host names a host, and configures its host worker.
type Host struct {
	Name, Login string
	// Options are the host worker's options, without directories and, except for the namespace,
	// without the server.
	Options workers.Options
}

// startBound limits how long a host may take to start.
const startBound = 30 * time.Second

// others is the additional time for the remaining hosts after one has failed, so that all
// failures are reported together.
const others = 3 * time.Second

// Hosts holds a run's hosts. Its methods may be called on a nil Hosts, which is empty.
type Hosts struct {
	config Config
	all    []*host
	facts  []Facts
	errs   []error
	lost   chan error
	ctx    context.Context // canceled by Close
	cancel context.CancelFunc
}

// Launch starts the hosts concurrently, and returns when all of them answer. If one does not,
// Launch stops all of them and returns an error with a line for each such host. It calls awaited
// with the names of slow hosts.
func Launch(ctx context.Context, c Config, hosts []Host, awaited func(names []string)) (*Hosts, error) {
	s := &Hosts{config: c, facts: make([]Facts, len(hosts)), errs: make([]error, len(hosts)), lost: make(chan error, len(hosts))}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	bounded, done := context.WithTimeoutCause(ctx, startBound, fmt.Errorf("no connection by %s within %s", c.Agent[0], startBound))
	defer done()
	bounded, giveUp := context.WithCancelCause(bounded)
	defer giveUp(nil)
	var mu sync.Mutex
	answered := make([]bool, len(hosts))
	var starting sync.WaitGroup
	for i, h := range hosts {
		one := &host{name: h.Name, login: h.Login, ending: make(chan struct{})}
		s.all = append(s.all, one)
		starting.Go(func() {
			facts, err := one.start(bounded, c, h.Options)
			mu.Lock()
			defer mu.Unlock()
			answered[i] = true
			s.facts[i], s.errs[i] = facts, err
			if err != nil {
				time.AfterFunc(others, func() { giveUp(errors.New("it had not answered when another host failed")) })
			}
		})
	}
	slow := time.AfterFunc(slowStart, func() {
		mu.Lock()
		var names []string
		for i, h := range hosts {
			if !answered[i] {
				names = append(names, h.Name)
			}
		}
		mu.Unlock()
		if len(names) > 0 {
			awaited(names)
		}
	})
	defer slow.Stop()
	starting.Wait()
	if err := s.failure(); err != nil {
		s.Close()
		return nil, err
	}
	for _, h := range s.all {
		go h.tunnel(s.ctx, c.Dial)
		go s.watch(h)
	}
	return s, nil
}

// slowStart is how long hosts may be starting before they are reported.
const slowStart = 2 * time.Second

// failure returns the errors for all hosts that did not start.
func (s *Hosts) failure() error {
	var lines []string
	for i, err := range s.errs {
		if err != nil {
			lines = append(lines, fmt.Sprintf("host %s: %s", s.all[i].name, err))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}

// watch reports a lost host.
func (s *Hosts) watch(h *host) {
	select {
	case <-h.ending:
	case <-h.process.exited:
		select {
		case <-h.ending:
		default:
			s.lost <- fmt.Errorf("host %s: %s", h.name, s.config.reason(h.process.err, h.process.said.lines()))
		}
	}
}

// Facts returns the facts that the hosts report about themselves, in the order of the hosts
// passed to Launch.
func (s *Hosts) Facts() []Facts { return s.facts }

// Lost returns a channel that receives an error for each host that unexpectedly lost its
// connection.
func (s *Hosts) Lost() <-chan error {
	if s == nil {
		return nil
	}
	return s.lost
}

// CopyOutput starts copying a run's logs into dir, the local directory of its logs. It returns
// immediately, and calls tell with read errors, and unkept with data that cannot be written to
// its file.
func (s *Hosts) CopyOutput(workflowID, runID, dir string, tell func(error), unkept func(path string, data []byte)) {
	in := outputRequest{WorkflowID: workflowID, RunID: runID}
	for _, h := range s.all {
		h.copied = make(chan struct{})
		go func() {
			defer close(h.copied)
			h.incomplete = h.copyOutput(s.ctx, in, dir, func(err error) { tell(fmt.Errorf("host %s: %w", h.name, err)) }, unkept)
		}()
	}
}

// SendStdin starts sending the content of in to the task on that host that reads stdin. It
// returns immediately. If in cannot be read, it calls tell, and the stdin ends.
func (s *Hosts) SendStdin(name string, in io.Reader, tell func(error)) {
	for _, h := range s.all {
		if h.name == name {
			go func() {
				if response, err := h.post(s.ctx, "/stdin", toldReader{in, tell}); err == nil {
					_ = response.Body.Close()
				} // otherwise watch reports that the host is lost
			}()
		}
	}
}

// toldReader is a reader that calls tell and then ends if its underlying reader fails.
type toldReader struct {
	io.Reader
	tell func(error)
}

func (r toldReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && err != io.EOF {
		r.tell(err)
		err = io.EOF
	}
	return n, err
}

// StopAll stops the processes on all hosts without using the server. It disconnects any host
// that it cannot reach.
func (s *Hosts) StopAll(ctx context.Context, how supervisor.StopAll) {
	if s == nil {
		return
	}
	s.each(func(h *host) {
		if h.stopAll(ctx, how) != nil && !how.Later {
			h.cut(func() {})
		}
	})
}

// Ends returns how the tasks on all hosts ended. It does not use the server.
func (s *Hosts) Ends(ctx context.Context) (Ends, error) {
	all := Ends{Exits: map[string]spec.Exit{}}
	if s == nil {
		return all, nil
	}
	for _, h := range s.all {
		ends, err := h.ends(ctx)
		if err != nil {
			return all, err
		}
		maps.Copy(all.Exits, ends.Exits)
		all.Living = all.Living || ends.Living
	}
	return all, nil
}

// Cut closes all connections, so that each host kills its processes. It does not wait.
func (s *Hosts) Cut() {
	if s == nil {
		return
	}
	for _, h := range s.all {
		h.cut(func() {})
	}
}

// End stops all hosts once all their output has arrived or ctx is done. It returns an error for
// each host with incomplete output.
func (s *Hosts) End(ctx context.Context) error {
	defer s.cancel()
	errs := make([]error, len(s.all))
	var all sync.WaitGroup
	for i, h := range s.all {
		all.Go(func() {
			h.end(ctx)
			if h.copied == nil {
				return
			}
			<-h.copied // the connection is closed, so this does not block
			if h.incomplete != nil {
				errs[i] = fmt.Errorf("the output of host %s is incomplete: %w", h.name, h.incomplete)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Close stops everything.
func (s *Hosts) Close() {
	if s == nil {
		return
	}
	s.each(func(h *host) {
		if h.process != nil {
			h.cut(func() {})
			select {
			case <-h.process.exited:
			case <-time.After(lastMoment):
				h.process.kill()
			}
		}
	})
	s.cancel()
}

// lastMoment limits how long an agent may take to exit after its stdin is closed.
const lastMoment = 3 * time.Second

func (s *Hosts) each(f func(*host)) {
	var all sync.WaitGroup
	for _, h := range s.all {
		all.Go(func() { f(h) })
	}
	all.Wait()
}
