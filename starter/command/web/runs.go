package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// rowsOfPage is the number of runs per page, except that the first page also lists all open
	// runs, up to maxOpen.
	rowsOfPage, maxOpen = 50, 200
	// maxHosts is the maximum number of hosts in a row.
	maxHosts = 3
)

// listQuery selects the runs of a list.
type listQuery struct {
	state, user, host, name, since string
	before                         time.Time
}

// The values of the parameter state.
const (
	stateAll    = ""
	stateOpen   = "open"
	stateEnded  = "ended"
	stateFailed = "failed"
)

func parseListQuery(v url.Values) (q listQuery, err error) {
	q = listQuery{state: v.Get("state"), user: v.Get("user"), host: v.Get("host"), name: v.Get("name"), since: v.Get("since")}
	switch q.state {
	case stateAll, stateOpen, stateEnded, stateFailed:
	default:
		return q, cli.Usagef("state=%s: use open, ended or failed", q.state)
	}
	if _, err := cli.ParseTime("since", q.since, time.Now()); err != nil {
		return q, err
	}
	if before := v.Get("before"); before != "" {
		if q.before, err = time.Parse(time.RFC3339Nano, before); err != nil {
			return q, cli.Usagef("before=%s: use a time such as 2026-01-31T12:00:00Z", before)
		}
	}
	return q, nil
}

// values returns the query without the page.
func (q listQuery) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"state": q.state, "user": q.user, "host": q.host, "name": q.name, "since": q.since} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// with returns the address of the list with another filter value.
func (q listQuery) with(name, value string) string {
	v := q.values()
	if v.Set(name, value); value == "" {
		v.Del(name)
	}
	return listURL(v)
}

func listURL(v url.Values) string {
	if len(v) == 0 {
		return "/"
	}
	return "/?" + v.Encode()
}

// older returns the address of the page with the runs that started before a time.
func (q listQuery) older(at time.Time) string {
	v := q.values()
	v.Set("before", at.UTC().Format(time.RFC3339Nano))
	return listURL(v)
}

// options returns what to list.
func (q listQuery) options() starter.ListOptions {
	o := starter.ListOptions{Owner: q.user, Host: q.host, Until: q.before, Failed: q.state == stateFailed}
	o.Since, _ = cli.ParseTime("since", q.since, time.Now()) // checked by parseListQuery
	if q.name != "" {
		if o.Name = q.name; !spec.IsPattern(q.name) || cli.CheckPatterns([]string{q.name}) != nil {
			o.Name = spec.Beginning(q.name)
		}
	}
	return o
}

// runList is a page of runs. Each list may contain an extra row, which shows that there are more
// runs.
type runList struct {
	open, ended []starter.Summary
}

// find lists a page's runs.
func (s *Server) find(ctx context.Context, q listQuery) (l runList, err error) {
	open, ended := q.options(), q.options()
	open.Open, open.Failed, open.Facts = true, false, true
	open.Limit = maxOpen + 1
	ended.Ended, ended.Limit = true, rowsOfPage+1
	if q.state == stateOpen {
		open.Limit = rowsOfPage + 1
	}
	if q.state == stateOpen || q.state == stateAll && q.before.IsZero() {
		if l.open, err = starter.List(ctx, s.Client, open); err != nil {
			return l, err
		}
	}
	if q.state != stateOpen {
		l.ended, err = starter.List(ctx, s.Client, ended)
	}
	return l, err
}

func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) {
	q, err := parseListQuery(r.URL.Query())
	if err != nil {
		s.fail(w, err)
		return
	}
	began := time.Now()
	list, at, err := s.lists.get(r.Context(), r.URL.RawQuery, askedFor, func(ctx context.Context) (runList, error) { return s.find(ctx, q) })
	if err != nil {
		s.fail(w, err)
		return
	}
	p := &page.RunsPage{Frame: s.frame("Runs", "Runs", at), Name: q.name, Filters: q.filters()}
	p.Refresh = pause(time.Since(began))
	for name, values := range q.values() {
		if name != "name" {
			p.Kept = append(p.Kept, page.Field{Name: name, Value: values[0]})
		}
	}
	if !q.before.IsZero() {
		p.Newer = listURL(q.values())
	}
	open, ended := list.open, list.ended
	switch {
	case q.state == stateOpen && len(open) > rowsOfPage:
		open = open[:rowsOfPage]
		p.Older = q.older(open[rowsOfPage-1].Started)
	case len(open) > maxOpen:
		open = open[:maxOpen]
		p.Cut = fmt.Sprintf("Only the latest %d open runs are shown; the filter Open shows all of them.", maxOpen)
	}
	if len(ended) > rowsOfPage {
		ended = ended[:rowsOfPage]
		p.Older = q.older(ended[rowsOfPage-1].Started)
	}
	for _, run := range open {
		p.Open = append(p.Open, q.row(run))
	}
	for _, run := range ended {
		p.Ended = append(p.Ended, q.row(run))
	}
	writeHTML(w, http.StatusOK)
	_ = page.RenderRuns(w, p)
}

// filters returns a list's filters.
func (q listQuery) filters() []page.Filter {
	choice := func(label, name, now string, texts ...string) page.Filter {
		f := page.Filter{Label: label}
		for i := 0; i+1 < len(texts); i += 2 {
			f.Links = append(f.Links, page.Link{Text: texts[i], URL: q.with(name, texts[i+1]), Current: texts[i+1] == now})
		}
		return f
	}
	all := []page.Filter{
		choice("State", "state", q.state, "All", stateAll, "Open", stateOpen, "Ended", stateEnded, "Failed", stateFailed),
		choice("Started", "since", q.since, "Any time", "", "Last hour", "1h", "Last day", "1d", "Last week", "7d"),
	}
	// Filters that were set by links in rows can be withdrawn only here.
	for _, set := range [][3]string{{"User", "user", q.user}, {"Host", "host", q.host}} {
		if set[2] != "" {
			all = append(all, page.Filter{Label: set[0], Links: []page.Link{{Text: set[0] + ": " + set[2] + " ×", URL: q.with(set[1], ""), Current: true}}})
		}
	}
	return all
}

// row returns a run's row.
func (q listQuery) row(run starter.Summary) page.RunRow {
	row := page.RunRow{Summary: run, Owner: page.Link{Text: run.Owner, URL: q.with("user", run.Owner)}}
	row.State, row.Tone, row.Why = stateOf(run)
	for i, host := range run.Hosts {
		if i == maxHosts {
			row.MoreHosts = len(run.Hosts) - maxHosts
			break
		}
		row.Hosts = append(row.Hosts, page.Link{Text: host, URL: q.with("host", host)})
	}
	return row
}

// stateOf returns a run's state in a list, and what is unusual about it.
func stateOf(run starter.Summary) (state string, tone page.Tone, why string) {
	switch {
	case run.Open && len(run.Facts) > 0:
		f := run.Facts[0]
		if state = run.State; f.Severity != outcome.Waits {
			state = string(f.Kind)
		}
		return state, page.ToneOf(f.Severity), f.String()
	case run.Open && run.State == outcome.StatePending:
		return run.State, page.Waits, "has no hosts yet"
	case run.Open:
		return "running", page.Active, ""
	case run.Ending != "":
		return run.Ending, page.Bad, ""
	}
	if run.Cause != "" && run.Cause != spec.CauseCompleted {
		why = run.Cause.Words()
	}
	if run.Verdict == spec.VerdictFailed && run.ExitCode != 0 {
		why = strings.TrimPrefix(fmt.Sprintf("%s, exit code %d", why, run.ExitCode), ", ")
	}
	state, tone = page.Ended(run.Verdict)
	return state, tone, why
}
