package page

import (
	"io"
	"net/url"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// RunsPage is a list of runs.
type RunsPage struct {
	Frame
	// Open lists the open runs, and Ended the ended ones, latest first.
	Open, Ended []RunRow
	Filters     []Filter
	// Name is a prefix of run names. Kept holds the remaining filters, for the form with the
	// name.
	Name string
	Kept []Field
	// Newer and Older lead to the neighbouring pages, or are "".
	Newer, Older string
	// Cut describes the omitted open runs, or is "".
	Cut string
}

// Filter is a choice between links.
type Filter struct {
	Label string
	Links []Link
}

// RunRow is a run in a list.
type RunRow struct {
	starter.Summary
	// State is the state as a word, and Why is why the run ended, or what is unusual about it.
	State string
	Tone  Tone
	Why   string
	Owner Link
	// Hosts are the first hosts, and MoreHosts counts the rest.
	Hosts     []Link
	MoreHosts int
}

// RunURL returns a run page's address.
func RunURL(id string) string { return "/runs/" + url.PathEscape(id) }

// RenderRuns writes a list of runs.
func RenderRuns(w io.Writer, p *RunsPage) error { return render(w, "runs", p) }

// RunGroup is a section of the list.
type RunGroup struct {
	Title string
	Rows  []RunRow
	Page  *RunsPage
}

// Groups returns the list's non-empty sections.
func (p *RunsPage) Groups() (groups []RunGroup) {
	for _, g := range []RunGroup{{"Open", p.Open, p}, {"Ended", p.Ended, p}} {
		if len(g.Rows) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// IsFiltered reports whether a filter is set.
func (p *RunsPage) IsFiltered() bool { return p.Name != "" || len(p.Kept) > 0 }

// Took returns how long a run took, or has been running.
func (p *RunsPage) Took(r RunRow) string {
	if r.Ended.IsZero() {
		return units.Span(p.At.Sub(r.Started))
	}
	return units.Span(r.Ended.Sub(r.Started))
}

// ListsCSS returns the lists' style sheet address.
func (f *Frame) ListsCSS() string { return assetURL("lists.css") }

// Age returns the time since an event, or "".
func (f *Frame) Age(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return units.Span(f.At.Sub(at))
}
