package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// maxProgress limits the progress message in a heartbeat, in bytes of JSON.
const maxProgress = 100

// ServeTasks serves the tasks that an earlier host worker left, at their existing sockets.
func (h *Host) ServeTasks(ctx context.Context) error {
	var runs []runkey.Run
	for _, p := range h.plans.all() {
		if p.Released {
			continue
		}
		runs = append(runs, p.Run)
		if p.Stopping != nil {
			h.services.SetStopping(p.Run, *p.Stopping)
		}
		reply, err := h.Supervisor.Processes(ctx, p.Run)
		if err != nil {
			return err
		}
		// Living tasks come first: a task counts as missing only at a barrier that exists.
		byTask := map[runkey.Task][]supervisor.Process{}
		for _, q := range reply.Processes {
			if q.Key.Generation != p.Generation {
				continue
			}
			byTask[q.Key] = append(byTask[q.Key], q)
			if q.Exit != nil {
				continue
			}
			if err := h.listenFor(p, q); err != nil {
				h.Log.Error("a task can no longer reach its host", zap.String("task", q.Key.String()), zap.Error(err))
			}
		}
		for key, processes := range byTask {
			last := processes[len(processes)-1]
			if last.Exit != nil && !p.comesBack(processes, h.Owned) {
				exit, _ := h.describeExit(p, last)
				h.services.Ended(key, howEnded(exit))
			}
		}
	}
	h.services.Sweep(runs)
	return nil
}

// comesBack reports whether a task will get another process after its last one.
func (p *plan) comesBack(processes []supervisor.Process, owned bool) bool {
	last := processes[len(processes)-1]
	if last.Granted {
		return true
	}
	if last.Exit.Reason == supervisor.ReasonCollateral {
		return false
	}
	_, again := p.next(p.historyOf(processes, last.Launch, owned), p.sealed())
	return again
}

// listenFor serves a task with a living process.
func (h *Host) listenFor(p *plan, q supervisor.Process) error {
	_, err := h.listen(p, q.Key, p.restartCount(q.Key.Generation, p.number(q)), q.LogDir)
	return err
}

// listen serves a task and returns its socket path.
func (h *Host) listen(p *plan, key runkey.Task, restart int, logDir string) (string, error) {
	return h.services.Listen(taskservices.Served{
		Key: key, RestartCount: restart, LogDir: logDir, User: p.User,
		Alone: p.Added[key.Task].Member != nil,
		View:  func() *taskapi.View { return p.view(key.Task) },
	})
}

// view returns a task's view of the cluster.
func (p *plan) view(task string) *taskapi.View {
	v := &taskapi.View{Here: map[string]bool{}, Local: p.Spec.Barriers == spec.BarriersLocal}
	for _, m := range p.clusterFor(task).Members {
		v.Members = append(v.Members, taskapi.Member{
			Task: m.Name(), Type: m.Type, Index: m.Index, Rank: m.Rank, LocalRank: m.LocalRank,
			Host: m.Host, Address: m.Address,
		})
	}
	for _, t := range p.Spec.TaskList() {
		v.Tasks = append(v.Tasks, t.Name())
	}
	for _, task := range p.Tasks {
		v.Here[task] = true
	}
	return v
}

// progress returns a task's reported progress, short enough for a heartbeat.
func (h *Host) progress(key runkey.Task) *spec.Progress {
	p := h.services.Progress(key)
	if p == nil {
		return nil
	}
	return &spec.Progress{Current: p.Current, Total: p.Total, Message: shortText(p.Message), Metrics: p.Metrics}
}

// shortText turns a string into a single line that is safe for a terminal, and limits the line's
// size as JSON.
func shortText(s string) string {
	s = tasklog.Printable([]byte(shorten.Text(s, 4*maxProgress)))
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // includes characters that reverse the text direction
			return ' '
		}
		return r
	}, s)
	for {
		b, err := json.Marshal(s)
		if err != nil || len(b)-len(`""`) <= maxProgress {
			return s
		}
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
}

// howEnded describes an exit in a few words, such as "exited with exit code 1".
func howEnded(e spec.Exit) string {
	switch {
	case e.StoppedByHost():
		return "was stopped by its host"
	case e.Cause == spec.CauseHostLost:
		return "was lost"
	case e.Signal != "":
		return "was killed by " + e.Signal
	}
	return fmt.Sprintf("exited with exit code %d", e.ExitCode)
}
