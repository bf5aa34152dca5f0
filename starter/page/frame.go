package page

import (
	"fmt"
	"html/template"
	"time"
)

// Mode is the place of a page.
type Mode int

// The values of [Mode].
const (
	// Live is a page of a server, which changes with the run.
	Live Mode = iota
	// File is a page in a file, which needs no server.
	File
)

// Frame has the parts that all pages share. Each model of a page has one.
type Frame struct {
	// Title is the title of the document.
	Title string
	Nav   []Link
	// At is the time of the facts on the page, and Zone the time zone of times on it; nil means
	// UTC.
	At   time.Time
	Zone *time.Location
	// Version is the version of clusterrun.
	Version string
	// Refresh is the time after which a live page asks for changes, or 0 if there will be none.
	Refresh time.Duration
	// Partial reports whether the page lacks what is not known yet.
	Partial bool
	// TemporalURL is the address of the subject of the page in Temporal's Web UI, or "".
	TemporalURL string
	// Token is sent with each request that changes something; see [Action].
	Token string

	mode Mode
}

// Link is a link with its text.
type Link struct {
	Text, URL string
	// Current reports whether it leads to the page that is shown already.
	Current bool
}

// Action is a button that asks a question, and then sends a request by POST to URL, with the
// token of the frame as the field "token".
type Action struct {
	// Name is the verb for programs, and Label its text on the page.
	Name, Label string
	URL         string
	// Question is asked first, and Effect says what will happen.
	Question, Effect string
	// Danger reports whether it ends something.
	Danger bool
	Fields []Field
}

// Field is a field of the form of an action.
type Field struct {
	Name, Label, Value string
	// Options are the possible values. A field without options takes text.
	Options []string
	// Hidden fields are sent, but not shown.
	Hidden bool
}

// IsFile reports whether the page is for a file.
func (f *Frame) IsFile() bool { return f.mode == File }

func (f *Frame) zone() *time.Location {
	if f.Zone == nil {
		return time.UTC
	}
	return f.Zone
}

// When returns a time element with the time of day and, if that was on another day, the date. The
// time of a file has it always: the file may be read on any day.
func (f *Frame) When(at time.Time) template.HTML {
	if at.IsZero() {
		return "–"
	}
	local, now := at.In(f.zone()), f.At.In(f.zone())
	layout := "15:04:05"
	if local.Format(time.DateOnly) != now.Format(time.DateOnly) {
		layout = "2 Jan 15:04"
		if local.Year() != now.Year() {
			layout = "2 Jan 2006 15:04"
		}
	}
	if f.IsFile() && at.Equal(f.At) {
		layout = "2 Jan 2006 15:04:05"
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`,
		at.UTC().Format(time.RFC3339), local.Format("2006-01-02 15:04:05.000 MST"), local.Format(layout)))
}

// Clock returns the time of day as text, or nothing if it is unknown.
func (f *Frame) Clock(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.In(f.zone()).Format("15:04:05")
}

// FrameOf returns the frame, for templates.
func (f *Frame) FrameOf() *Frame { return f }
