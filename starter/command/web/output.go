package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/logs"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

const (
	// tailOfEach is how many lines of each stream are read, and tailToSearch how many are read
	// for a search.
	tailOfEach, tailToSearch = 100, 5000
	// maxLines is the maximum number of lines on a page.
	maxLines = 400
	// maxRanks is the maximum number of ranks with output that is read.
	maxRanks = 32
)

// outputQuery is the output selection in a page's query.
type outputQuery struct{ page.OutputFilter }

func parseOutputQuery(v url.Values) outputQuery {
	return outputQuery{page.OutputFilter{Ranks: strings.TrimSpace(v.Get("ranks")), Search: v.Get("search"), Stderr: v.Get("stderr") != ""}}
}

// names returns the chosen tasks' names, or nil for all. The filter contains words for tasks,
// separated by commas.
func (q outputQuery) names(s *starter.Status) (names []string, err error) {
	words := strings.FieldsFunc(q.Ranks, func(r rune) bool { return r == ',' || r == ' ' })
	if len(words) == 0 {
		return nil, nil
	}
	tasks, unknown := s.Select(words)
	return list.Of(tasks, func(t starter.TaskStatus) string { return t.Name }), cli.UnknownTasks(s, unknown)
}

// outputTakes limits how long hosts are asked for output. The page shows what has arrived.
const outputTakes = 5 * time.Second

// runOutput is part of a run's output.
type runOutput struct {
	page.Output
	// last holds the last lines of tasks by rank.
	last map[int]string
	// lasts reports whether it will not change.
	lasts bool
}

// addOutput adds the output that a page shows, if it is known in time.
func (s *Server) addOutput(ctx context.Context, p *page.RunPage, run *starter.Run, status *starter.Status, q outputQuery, until time.Time) (known bool) {
	key := fmt.Sprintf("%s\x00%t\x00%q\x00%q\x00%t", keyOf(run), status.Open, q.Ranks, q.Search, q.Stderr)
	out, _, err := s.outputs.get(ctx, key, time.Until(until), func(ctx context.Context) (*runOutput, error) {
		ctx, cancel := context.WithTimeout(ctx, outputTakes)
		defer cancel()
		tasks := page.Tasks{All: slices.Clone(p.Tasks.All)}
		out := &runOutput{Output: s.outputOf(ctx, run, status, tasks, q), last: map[int]string{}, lasts: !status.Open}
		for _, t := range tasks.All {
			out.last[t.Rank] = t.LastLine
		}
		return out, nil
	})
	if known = err == nil; known {
		p.Output = out.Output
		for i := range p.Tasks.All {
			p.Tasks.All[i].LastLine = out.last[p.Tasks.All[i].Rank]
		}
	}
	p.Output.Pending = !known
	p.Output.Filter, p.Output.LogURL = q.OutputFilter, page.RunURL(run.ID)+"/log"
	if run.ExecutionID != "" {
		p.Output.LogURL += "?execution=" + url.QueryEscape(run.ExecutionID)
	}
	return known
}

// outputOf returns the output of a run that a page shows. If it has read the output, it also sets
// LastLine in tasks, which must contain all of the run's tasks.
func (s *Server) outputOf(ctx context.Context, run *starter.Run, status *starter.Status, tasks page.Tasks, q outputQuery) (out page.Output) {
	names, err := q.names(status)
	if err != nil {
		out.Missing = append(out.Missing, err.Error())
		return out
	}
	all := len(tasks.All)
	if names == nil && all > maxRanks {
		for _, t := range tasks.Rows()[:maxRanks] {
			names = append(names, t.Name)
		}
		out.Cut = fmt.Sprintf("Output of %d of %d tasks, those with problems first. Select ranks to see others.", maxRanks, all)
	}
	if len(names) > maxRanks {
		out.Cut = fmt.Sprintf("Output of the first %d of %d selected tasks.", maxRanks, len(names))
		names = names[:maxRanks]
	}
	selected := files.Selection{Names: names, Selection: tasklog.Selection{Tail: tailOfEach, Last: true, OnlyStderr: q.Stderr}}
	if q.Search != "" {
		selected.Tail = tailToSearch
	}
	lines, missing := logs.Merged(ctx, s.App, run, status, tasks.All, selected, q.Search)
	if len(lines) > maxLines {
		lines = lines[len(lines)-maxLines:]
		out.Cut = strings.TrimSpace(fmt.Sprintf("%s Only the last %d lines are shown.", out.Cut, maxLines))
	}
	out.Lines, out.Missing = lines, append(out.Missing, missing...)
	return out
}

// download sends the output of a run, or of one task, as a file.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	run, err := s.run(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	status, err := run.Status(r.Context())
	if err != nil {
		s.fail(w, err)
		return
	}
	name := run.ID
	selected := files.Selection{}
	if task := r.URL.Query().Get("task"); task != "" {
		selected.Names = []string{task}
		if _, unknown := status.Select(selected.Names); len(unknown) > 0 {
			s.fail(w, cli.UnknownTasks(status, unknown))
			return
		}
		name += "-" + task
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.log"`, fileName(name)))
	// The file itself names the unreadable parts, because users do not read the server's log.
	reader := logs.NewReader(&cli.App{Out: w, Err: w, Global: s.App.Global}, run, selected)
	if err := reader.Show(r.Context()); err != nil && r.Context().Err() == nil {
		fmt.Fprintf(w, "clusterrun: %s\n", err)
	}
}

// fileName returns a name without characters that are special in a header or a path.
func fileName(text string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < '~' && !strings.ContainsRune(`"\/:*?<>|;%`, r) {
			return r
		}
		return '_'
	}, text)
}
