package specs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// Pack packs the directory that the run ships, and sets the archive in the spec. It returns nil
// if there is no such directory.
func Pack(ctx context.Context, a *cli.App, s *spec.RunSpec) (*shipped.Archive, error) {
	s.Ship.Archive, s.Ship.From = nil, nil
	if s.Ship.Dir == "" {
		return nil, nil
	}
	if !cli.IsDir(s.Ship.Dir) {
		return nil, cli.Usagef("--ship %s: no such directory; name the one that tasks need", s.Ship.Dir)
	}
	done := a.SayIfSlow("packing " + s.Ship.Dir + " ...")
	archive, err := shipped.Pack(ctx, s.Ship.Dir, a.Global.StateDir, ShipOptions(s))
	done()
	if err != nil {
		return nil, ShipProblems(err)
	}
	s.Ship.Archive = &archive.Archive
	return archive, nil
}

func ShipOptions(s *spec.RunSpec) shipped.Options {
	n, _ := spec.ParseSize(cmp.Or(s.Ship.Limit, spec.DefaultShipLimit)) // the spec is validated
	return shipped.Options{Exclude: s.Ship.Exclude, Limit: n}
}

// ShipProblems turns packing errors into command-line mistakes.
func ShipProblems(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	e := &cli.UsageError{}
	for line := range strings.Lines(err.Error()) {
		e.Problems = append(e.Problems, "--ship: "+strings.TrimSuffix(line, "\n"))
	}
	return e
}

// maxTakers limits how many hosts are tried.
const maxTakers = 8

// Ship hands a run's archive to one host of its queue, which keeps it for the rest, so that this
// command may exit.
func Ship(ctx context.Context, a *cli.App, c client.Client, on cli.Target, s *spec.RunSpec, archive *shipped.Archive, o starter.Options) error {
	of := shipped.Upload{WorkflowID: o.ID}
	var err error
	if of.Namespace, err = cli.NamespaceOf(on); err != nil {
		return err
	}
	if of.Server, err = server.Identity(ctx, c, of.Namespace); err != nil {
		return err
	}
	f := starter.GetFleet(c, o.Queue)
	hosts, err := f.Hosts(ctx)
	switch {
	case starter.IsError[*starter.NoFleetError](err):
		return fmt.Errorf("--ship: one of the hosts must have the files before the run starts, but %w", err)
	case err != nil:
		return err
	}
	var problems []string
	plan, _ := f.Plan(ctx, s) // starting the run reports the error
	likely := list.Of(plan.Places, func(p fleet.Place) string { return p.Host })
	for _, h := range takers(hosts, likely) {
		if h.State == fleet.HostSilent {
			continue
		}
		if len(problems) == maxTakers {
			break
		}
		if s.Ship.From, err = handTo(ctx, a, h, archive, of); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		problems = append(problems, err.Error())
	}
	if len(problems) == 0 {
		problems = []string{"all of them are silent"}
	}
	return fmt.Errorf("--ship: no host in queue %s accepts the files, so the run was not started: %s", f.Queue, strings.Join(problems, "; "))
}

// takers returns the hosts in the order to try them: hosts where the run would start now, then
// ready hosts, then the rest.
func takers(hosts []fleet.HostStatus, likely []string) []fleet.HostStatus {
	rank := func(h fleet.HostStatus) int {
		switch {
		case slices.Contains(likely, h.Name):
			return slices.Index(likely, h.Name)
		case h.State == fleet.HostReady:
			return len(likely)
		}
		return len(likely) + 1
	}
	hosts = slices.Clone(hosts)
	slices.SortStableFunc(hosts, func(a, b fleet.HostStatus) int { return rank(a) - rank(b) })
	return hosts
}

// handTo hands an archive to a host, and returns the service that other hosts get it from. It
// returns nil if a host worker on this machine that serves nothing keeps it in its state directory.
func handTo(ctx context.Context, a *cli.App, h fleet.HostStatus, archive *shipped.Archive, of shipped.Upload) (*spec.HostService, error) {
	if h.Store == nil {
		for _, dir := range []string{a.WorkerDir(), a.DevDir()} {
			if h.Instance == supervisor.InstanceIn(dir) {
				store := shipped.Open(dir)
				if err := store.Keep(archive.Digest, of); err != nil {
					return nil, err
				}
				return nil, store.Put(archive.Archive, archive.Reader())
			}
		}
		return nil, fmt.Errorf("host %s does not serve files (start its `clusterrun worker` with --listen)", h.Name)
	}
	service := *h.Store
	service.Host = h.Name
	to := hostservice.NewClient(service, "")
	defer to.Close()
	return to.StoreArchive(ctx, archive.Archive, of, Progress(a, archive, "host "+h.Name))
}

// progressEvery is the interval between progress messages about a transfer.
const progressEvery = 5 * time.Second

// Progress returns an archive's reader. It reports that the archive is being sent, and the
// progress until the reader is closed.
func Progress(a *cli.App, archive *shipped.Archive, to string) io.ReadCloser {
	total := units.Bytes(int64(archive.Size))
	a.Say("shipping %s (%s) to %s", total, units.Count(archive.Files, "file", "files"), to)
	r := &observed{Reader: archive.Reader(), closed: make(chan struct{})}
	go func() {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				a.Say("shipped %s of %s to %s", units.Bytes(r.n.Load()), total, to)
			case <-r.closed:
				return
			}
		}
	}()
	return r
}

// observed is a reader that counts the bytes read.
type observed struct {
	io.Reader
	n      atomic.Int64
	once   sync.Once
	closed chan struct{}
}

func (r *observed) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.n.Add(int64(n))
	return n, err
}

func (r *observed) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}
