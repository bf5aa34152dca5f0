package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/taskapi"
	"github.com/clusterrun/clusterrun/activities/tasklog"
	"github.com/clusterrun/clusterrun/workflows/shorten"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// maxProgress bounds the text of progress in a heartbeat, in bytes of JSON.
const maxProgress = 100

// views are what the tasks of a generation know of each other, once for all of
// them: in a large run it is large, too.
type views struct {
	mu  sync.Mutex
	all map[viewKey]*taskapi.View
}

type viewKey struct {
	run        supervisor.RunKey
	generation int
	// added is the task, where it has a view of its own.
	added string
}

// ServeTasks serves the tasks that an earlier host worker left, at the sockets
// they know.
func (h *Host) ServeTasks(ctx context.Context) error {
	var runs []taskapi.Run
	for _, p := range h.plans.all() {
		if p.Released {
			continue
		}
		runs = append(runs, taskRun(p.Run))
		if p.Stopping != nil {
			h.tasks.SetStopping(taskRun(p.Run), *p.Stopping)
		}
		reply, err := h.Supervisor.Processes(ctx, p.Run)
		if err != nil {
			return err
		}
		// First those that live: without a barrier to wait at nobody can be missing.
		byTask := map[supervisor.Key][]supervisor.Process{}
		for _, q := range reply.Processes {
			if q.Key.Generation != p.Generation {
				continue
			}
			byTask[q.Key] = append(byTask[q.Key], q)
			if q.Exit != nil {
				continue
			}
			if err := h.listenFor(p, q); err != nil {
				h.Log.Error("a task cannot ask its host any more", zap.String("task", q.Key.String()), zap.Error(err))
			}
		}
		for key, processes := range byTask {
			last := processes[len(processes)-1]
			if last.Exit != nil && !h.comesBack(p, processes) {
				exit, _ := h.describeExit(last, p.inCall(last))
				h.tasks.Ended(taskOf(key), true, howEnded(exit))
				h.coordinatorEnded(p, processes)
			}
		}
	}
	h.tasks.Sweep(runs)
	return nil
}

// comesBack reports whether a task will have another process after its last one.
func (h *Host) comesBack(p *plan, processes []supervisor.Process) bool {
	last := processes[len(processes)-1]
	if last.Granted {
		return true
	}
	if last.Exit.Reason == supervisor.ReasonCollateral {
		return false
	}
	_, again := h.next(p, h.historyOf(p, processes, last.Launch), p.sealed())
	return again
}

// listenFor serves a task with a living process.
func (h *Host) listenFor(p *plan, q supervisor.Process) error {
	_, err := h.listen(p, q.Key, p.restartCount(q.Key.Generation, p.number(q)), q.LogDir)
	return err
}

// listen serves a task and returns the path of its socket.
func (h *Host) listen(p *plan, key supervisor.Key, restart int, logDir string) (string, error) {
	return h.tasks.Listen(taskapi.Task{
		ID: taskOf(key), RestartCount: restart, Host: h.Name, LogDir: logDir, View: h.view(p, key),
	})
}

// view is what a task knows of the others.
func (h *Host) view(p *plan, key supervisor.Key) *taskapi.View {
	k := viewKey{run: key.Run, generation: key.Generation}
	if a, ok := p.Added[key.Task]; ok && a.Member != nil {
		k.added = key.Task
	}
	h.views.mu.Lock()
	defer h.views.mu.Unlock()
	if v := h.views.all[k]; v != nil {
		return v
	}
	h.views.drop(func(o viewKey) bool { return o.run == k.run && o.generation < k.generation })
	v := &taskapi.View{Here: map[string]bool{}, Local: p.Spec.Barriers == spec.BarriersLocal}
	for _, m := range p.clusterFor(key.Task).Members {
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
	if h.views.all == nil {
		h.views.all = map[viewKey]*taskapi.View{}
	}
	h.views.all[k] = v
	return v
}

// endTasks ends the service for the tasks of a run.
func (h *Host) endTasks(run supervisor.RunKey) {
	h.tasks.Release(taskRun(run))
	h.asking.forget(run)
	h.views.mu.Lock()
	defer h.views.mu.Unlock()
	h.views.drop(func(k viewKey) bool { return k.run == run })
}

// drop deletes the views that which picks. v.mu must be held.
func (v *views) drop(which func(viewKey) bool) {
	for k := range v.all {
		if which(k) {
			delete(v.all, k)
		}
	}
}

// progress is what a task says of its progress, short enough for a heartbeat.
func (h *Host) progress(key supervisor.Key) *spec.Progress {
	p := h.tasks.Progress(taskOf(key))
	if p == nil {
		return nil
	}
	return &spec.Progress{Current: p.Current, Total: p.Total, Message: shortText(p.Message)}
}

// shortText makes one line of a text, fit for a terminal, and cuts it to the bytes it
// has as JSON.
func shortText(s string) string {
	s = tasklog.Printable([]byte(shorten.Text(s, 4*maxProgress)))
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // what turns the direction of a line around is no control character
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

// howEnded says it in a few words, such as "exited with exit code 1".
func howEnded(e spec.Exit) string {
	switch {
	case e.StoppedByHost():
		return "was stopped by its host"
	case e.Cause == spec.CauseHostLost:
		return "was lost"
	case e.Signal != "":
		return "ended by " + e.Signal
	}
	return fmt.Sprintf("exited with exit code %d", e.ExitCode)
}

func taskOf(k supervisor.Key) taskapi.ID {
	return taskapi.ID{Run: taskRun(k.Run), Generation: k.Generation, Task: k.Task}
}

func runKey(r taskapi.Run) supervisor.RunKey {
	return supervisor.RunKey{Namespace: r.Namespace, WorkflowID: r.WorkflowID, RunID: r.RunID}
}

func taskRun(r supervisor.RunKey) taskapi.Run {
	return taskapi.Run{Namespace: r.Namespace, WorkflowID: r.WorkflowID, RunID: r.RunID}
}
