package page

import (
	"fmt"
	"html/template"
	"time"
)

// Mode is the way a page is delivered.
type Mode int

// The values of [Mode].
const (
	// Live is a server's page, which changes with the run.
	Live Mode = iota
	// File is a page in a file, which works without a server.
	File
)

// Frame holds the parts that all pages share. Each page's model embeds one.
type Frame struct {
	// Title is the document's title.
	Title string
	Nav   []Link
	// At is when the page's facts were current. Zone is the time zone of times on the page; nil
	// means UTC.
	At   time.Time
	Zone *time.Location
	// Version is clusterrun's version.
	Version string
	// Refresh is how often a live page requests changes, or 0 if none will follow.
	Refresh time.Duration
	// Partial reports whether the page omits what is still unknown.
	Partial bool
	// TemporalURL is the address of the page's subject in Temporal's Web UI, or "".
	TemporalURL string
	// Token is sent with each request that changes something; see [Action].
	Token string

	mode Mode
}

// Link is a link with its text.
type Link struct {
	Text, URL string
	// Current reports whether the link leads to the page already shown.
	Current bool
}

// Action is a button that, after confirmation, sends a POST request to URL, with the frame's
// token as the field "token".
type Action struct {
	// Name is the verb for programs, and Label the verb on the page.
	Name, Label string
	URL         string
	// Question is the confirmation question, and Effect is what the action does.
	Question, Effect string
	// Danger reports whether the action stops something.
	Danger bool
	Fields []Field
}

// Field is a field of an action's form.
type Field struct {
	Name, Label, Value string
	// Options lists the allowed values. A field without options takes text.
	Options []string
	// Hidden fields are sent but not shown.
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

// When returns a time element with the time of day and, if at is on another day, the date. In a
// file it always includes the date, because the file may be read on any day.
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

// Clock formats the time of day, or returns "" if at is unknown.
func (f *Frame) Clock(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.In(f.zone()).Format("15:04:05")
}

// FrameOf returns the frame, for templates.
func (f *Frame) FrameOf() *Frame { return f }
