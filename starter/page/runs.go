package page

import (
	"io"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/timespan"
)

// RunsPage is a list of runs.
type RunsPage struct {
	Frame
	// Open are the runs that have not ended, and Ended the others, the latest first.
	Open, Ended []RunRow
	Filters     []Filter
	// Name is the start of a name that the runs have. Kept are the other filters, for the form
	// with the name.
	Name string
	Kept []Field
	// Newer and Older lead to other pages, and are "" without such pages.
	Newer, Older string
	// Cut says which open runs are left out, or is "".
	Cut string
}

// Filter is a choice between links.
type Filter struct {
	Label string
	Links []Link
}

// RunRow is a run in a list.
type RunRow struct {
	ID, URL string
	Name    string
	State   string
	Tone    Tone
	// Why says why it ended, or what is unusual about it.
	Why     string
	Command string
	Tasks   string
	Owner   Link
	// Hosts are the first hosts, and MoreHosts the number of others.
	Hosts          []Link
	MoreHosts      int
	Started, Ended time.Time // Ended is zero if the run is open
	Restarts       int
}

// RenderRuns writes a list of runs.
func RenderRuns(w io.Writer, p *RunsPage) error { return render(w, "runs", p) }

// RunGroup is a part of the list.
type RunGroup struct {
	Title string
	Rows  []RunRow
	Page  *RunsPage
}

// Groups returns the parts of the list that have runs.
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

// Took returns how long a run took, or has taken.
func (p *RunsPage) Took(r RunRow) string {
	if r.Ended.IsZero() {
		return timespan.Of(p.At.Sub(r.Started))
	}
	return timespan.Of(r.Ended.Sub(r.Started))
}

// ListsCSS returns the address of the style of lists.
func (f *Frame) ListsCSS() string { return assetURL("lists.css") }

// Age returns the time since an event, or "".
func (f *Frame) Age(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return timespan.Of(f.At.Sub(at))
}
