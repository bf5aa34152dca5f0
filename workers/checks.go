package workers

import (
	"context"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/hostcheck"
	"github.com/clusterrun/clusterrun/activities/server"
)

func (s *side) openChecks(ctx context.Context) *hostcheck.Checker {
	return hostcheck.New(ctx, hostcheck.Config{
		Checks: s.Checks, Every: s.CheckEvery, Timeout: s.CheckTimeout, Log: s.log, Instance: s.supervisor.Instance(),
		Around: hostcheck.Around{
			Dirs: []string{s.StateDir, s.logRoot()},
			Clock: func(ctx context.Context) (ahead, doubt time.Duration, err error) {
				return server.Clock(ctx, s.client, s.namespaceName())
			},
		},
	})
}
