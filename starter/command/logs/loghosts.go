package logs

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Host is a host that serves its log files.
type Host struct {
	name   string
	Client *hostservice.Client
	// Here is a directory on this machine with the host's files. It may be empty.
	Here string
	// Attempts holds the processes with files on the host; see [tasklog.Attempts].
	Attempts map[int][]int
	Reader   *hostservice.Follower // nil if Here is set or the host could not be reached yet
	// Err is why not all of the host's files could be read. said reports whether that was
	// printed.
	Err  error
	said bool
}

// LearnServices asks an ended run for its hosts' services if some files may not be on this
// machine. A run with earlier generations reveals where these ran only through the services. A
// private queue's host workers exited with the run.
func (l *Reader) LearnServices(ctx context.Context, s *starter.Status) {
	if s.Open || spec.IsPrivateQueue(s.Queue) || len(l.Hosts) > 0 && s.Generation == 0 {
		return
	}
	files := l.logFiles(s)
	if s.Generation == 0 && len(files) > 0 && !slices.ContainsFunc(files, func(f logFiles) bool { return l.whyNotHere(s, f) != "" && !l.isRead(f) }) {
		return
	}
	// A run without a worker does not answer; namesLeftOut then names the missing processes.
	var err error
	s.Services, err = l.run.Services(ctx)
	l.unknown = err != nil
}

// Misses names the run's unreadable output, and reports whether there is any.
func (l *Reader) Misses(s *starter.Status) bool {
	leftOut, incomplete, earlier := l.namesLeftOut(s), l.missesSome(), l.missesEarlier(s)
	return leftOut || incomplete || earlier || l.Broken.Load()
}

// missesEarlier names the tasks that earlier returns, and reports whether there are any.
func (l *Reader) missesEarlier(s *starter.Status) bool {
	names := l.earlier(s)
	if len(names) == 0 {
		return false
	}
	l.Say("%s", l.Color.Bad(fmt.Sprintf("the output may be incomplete: no worker executes run %s, so it is not known on which hosts earlier processes of %s were",
		l.run.ID, shorten.List(names, 5))))
	return true
}

// earlier returns the tasks with earlier processes that are not here and ran on unknown hosts.
func (l *Reader) earlier(s *starter.Status) (names []string) {
	if !l.unknown || s.Generation == 0 {
		return nil
	}
	meant := l.Selected.Of(s, l.there)
	for _, t := range s.Tasks {
		there := l.there[t.Rank]
		_, _, pruned := tasklog.Pruned(there)
		gaps := len(there) == 0 || there[len(there)-1] != len(there)-1
		if gaps && !pruned && meant.HasTask(t.Rank) {
			names = append(names, t.Name)
		}
	}
	return names
}

// AddHosts asks all hosts that are not being read yet, in parallel, for a list of their files.
// It returns the hosts with files that are not here.
func (l *Reader) AddHosts(ctx context.Context, s *starter.Status) (added []*Host) {
	files := l.logFiles(s)
	var asked sync.WaitGroup
	var hosts []*Host
	for _, service := range s.Services {
		h := l.Hosts[service.Address]
		switch {
		case h == nil && (l.isHere(s, files, service.Host) || !l.isMeant(s, service.Host)):
			continue
		case h == nil:
			h = &Host{name: service.Host, Client: hostservice.NewClient(service, s.ExecutionID)}
			l.Hosts[service.Address] = h
		case h.Here != "" || h.Reader != nil:
			continue
		}
		hosts = append(hosts, h)
		asked.Go(func() { h.ask(ctx, l.run.FilesOf(s)) })
	}
	asked.Wait()
	for _, h := range hosts {
		if h.Err == nil && h.Here == "" {
			l.Found(h.Attempts)
			added = append(added, h)
		}
	}
	return added
}

// isHere reports whether all files of a host that the run reports are here, so that the host
// need not be asked.
func (l *Reader) isHere(s *starter.Status, files []logFiles, host string) bool {
	if s.Generation > 0 {
		return false // it may have files of earlier generations
	}
	some := false
	for _, f := range files {
		if f.host == host || f.host == "" {
			if some = true; l.whyNotHere(s, f) != "" {
				return false
			}
		}
	}
	return some
}

// isMeant reports whether a host may have selected output.
func (l *Reader) isMeant(s *starter.Status, host string) bool {
	meant := l.Selected.Of(s, nil)
	return s.Generation > 0 || slices.ContainsFunc(s.Tasks, func(t starter.TaskStatus) bool {
		return meant.HasTask(t.Rank) && (t.Host == host || t.Host == "")
	})
}

func (h *Host) ask(ctx context.Context, files *starter.Files) {
	listing, err := h.Client.List(ctx)
	if h.Err = err; err != nil {
		return
	}
	h.Attempts = listing.Attempts
	for rank, attempts := range listing.Attempts {
		for _, n := range attempts {
			// Each process of a task is on one host only.
			if files.Here(tasklog.ProcessDir(listing.Dir, n, rank)) == nil {
				h.Here = listing.Dir
				return
			}
		}
	}
}

// Follows starts reading from a host.
func (l *Reader) Follows(h *Host, selection tasklog.Selection, live bool) {
	h.Reader = h.Client.Follow(l.from(h), hostservice.FollowOptions{
		Selection: selection, WholeLines: l.asJSON(), Live: live, OnError: l.unreadable,
		OnTrouble: func(err error) {
			if err == nil {
				l.Say("the output of %s is read again", h.name)
			} else {
				l.Say("the output of %s cannot be read now: %s", h.name, err)
			}
		},
	})
}

// FinishHosts reads the remaining output from all hosts. It returns an error only if ctx is
// done.
func (l *Reader) FinishHosts(ctx context.Context) error {
	var all sync.WaitGroup
	for _, h := range l.Hosts {
		if h.Reader != nil {
			all.Go(func() { h.Err = h.Reader.Stop(ctx) })
		}
	}
	all.Wait()
	l.finished = true
	for _, h := range l.Hosts {
		if h.Reader != nil && h.Err == nil {
			h.Attempts = h.Reader.Attempts()
		}
	}
	return ctx.Err()
}

func (l *Reader) CloseHosts() {
	for _, h := range l.Hosts {
		h.Client.Close()
	}
}

// missesSome names the hosts that could not be read completely, and reports whether there are
// any.
func (l *Reader) missesSome() (some bool) {
	for _, h := range l.Hosts {
		if h.Err == nil || h.Here != "" {
			continue
		}
		if some = true; !h.said {
			l.Say("%s", l.Color.Bad(fmt.Sprintf("the output is incomplete: %s", h.Err)))
		}
	}
	return some
}

// isRead reports whether a process's files are read from a host that serves them.
func (l *Reader) isRead(f logFiles) bool {
	for _, h := range l.Hosts {
		if h.Err == nil && h.Reader != nil && (h.name == f.host && !l.finished || slices.Contains(h.Attempts[f.rank], f.attempt)) {
			return true
		}
	}
	return false
}

// answered reports whether a host has listed its files.
func (l *Reader) answered(host string) bool {
	for _, h := range l.Hosts {
		if h.name == host && h.Err == nil {
			return true
		}
	}
	return false
}

// whyNotServed returns why files that are not here cannot be read from their host.
func (l *Reader) whyNotServed(f logFiles) string {
	for _, h := range l.Hosts {
		switch {
		case h.name != f.host:
		case h.Err != nil:
			h.said = true
			return "; " + h.Err.Error()
		default:
			return "; they are not there any more"
		}
	}
	return ", which no host worker serves"
}
