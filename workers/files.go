package workers

import (
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/shipped"
)

// listen opens the service for runs' files. It returns nil if there is no address.
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

// openFiles opens the service. Processes matter more than the readers of their output, so if the
// service cannot be opened, the error is only logged.
func (s *side) openFiles() *hostservice.Server {
	files, err := s.listen()
	if err != nil {
		s.log.Error("Other hosts cannot read the output of runs.", zap.Error(err))
	}
	return files
}

// serveFiles answers requests until stop is called.
func serveFiles(files *hostservice.Server, host *activities.Host) (stop func()) {
	if files == nil {
		return func() {}
	}
	go files.Serve(host.AwaitOver)
	return files.Close
}
