package workers

import (
	"cmp"
	"sync"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/shipped"
)

// listen opens the service of the files of runs, or returns nil if there is no address for it.
func (o Options) listen() (*hostservice.Server, error) {
	if o.Listen == "" {
		return nil, nil
	}
	peer, err := o.Server.HostPort()
	if err != nil {
		return nil, err
	}
	return hostservice.Listen(hostservice.Config{
		Host: o.Host, StateDir: o.StateDir, Listen: o.Listen, Advertise: o.ListenAs, Peer: peer, Archives: shipped.Open(o.StateDir),
	})
}

// checkListen returns why the service could not listen.
func (o Options) checkListen() error {
	files, err := o.listen()
	if files != nil {
		files.Close()
	}
	return err
}

// openFiles opens the service. Processes matter more than the readers of their output: if the
// service cannot be opened, the error is only logged.
func (s *side) openFiles() *hostservice.Server {
	files, err := s.listen()
	if err != nil {
		s.log.Error("The output of runs cannot be read from other hosts.", zap.Error(err))
	}
	return files
}

// serveFiles begins to answer, until the function that it returns is called.
func serveFiles(files *hostservice.Server, host *activities.Host) (stop func()) {
	if files == nil {
		return func() {}
	}
	go files.Serve(host.AwaitOver, host.Exec)
	return files.Close
}

// serveHere opens a service for commands with tasks of a host worker that serves no files to
// other hosts.
func (s *side) serveHere() (*hostservice.Server, error) {
	s.here.Lock()
	defer s.here.Unlock()
	if s.here.files != nil || s.here.closed {
		return s.here.files, nil
	}
	files, err := hostservice.Listen(hostservice.Config{
		Host: s.Host, StateDir: s.StateDir, Listen: cmp.Or(s.ExecAt, "127.0.0.1"), Through: s.ExecThrough, Archives: shipped.Open(s.StateDir),
	})
	if err != nil {
		return nil, err
	}
	s.here.files = files
	go files.Serve(s.host.AwaitOver, s.host.Exec)
	return files, nil
}

// here is the service for commands with tasks. It is opened when it is needed first.
type here struct {
	sync.Mutex
	files  *hostservice.Server
	closed bool
}

func (h *here) close() {
	h.Lock()
	defer h.Unlock()
	if h.closed = true; h.files != nil {
		h.files.Close()
	}
}
