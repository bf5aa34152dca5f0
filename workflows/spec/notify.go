package spec

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// Notification says of which events of a run to notify whom: a webhook, or a command on a host
// of the run.
type Notification struct {
	Events  []NotifyOn `json:"events,omitzero"`
	Webhook Variable   `json:"webhook,omitzero"`
	Secret  Source     `json:"secret,omitzero"`
	Command []string   `json:"command,omitempty"`
}

// NotifyOn is an event of a run.
type NotifyOn string

// The values of [NotifyOn].
const (
	// NotifyEnd is any end of the run.
	NotifyEnd NotifyOn = "end"
	// NotifyFailure is an end of the run as failed or timed out.
	NotifyFailure NotifyOn = "failure"
	// NotifyHang is a finding that all tasks on a host are silent.
	NotifyHang NotifyOn = "hang"
	// NotifyRestart is a restart of a task or of the group.
	NotifyRestart NotifyOn = "restart"
)

var notifyOns = []NotifyOn{NotifyEnd, NotifyFailure, NotifyHang, NotifyRestart}

// MaxNotices bounds the notices of hangs and restarts of a run. Its end always leads to one.
const MaxNotices = 20

// maxNotifications bounds the notifications of a spec.
const maxNotifications = 16

// Notice is the content of a notification: the body of a webhook, or the stdin of a command.
type Notice struct {
	// ID is the same in each try.
	ID    string   `json:"id"`
	Event NotifyOn `json:"event"`
	// Text is a sentence about the event, as reports have it.
	Text string    `json:"text"`
	Time time.Time `json:"time"`
	// Run is the ID of the run, Execution the ID of its first execution, and Name its name in the
	// spec.
	Run       string `json:"run"`
	Execution string `json:"execution"`
	Name      string `json:"name,omitempty"`
	// Verdict, ErrorType and ExitCode say how the run ended.
	Verdict   Verdict `json:"verdict,omitempty"`
	ErrorType string  `json:"error_type,omitempty"`
	ExitCode  *int    `json:"exit_code,omitempty"`
	// Task is the task that failed first, or that was started again, and Host its host.
	Task string `json:"task,omitempty"`
	Host string `json:"host,omitempty"`
	// Tasks are the silent tasks.
	Tasks []string `json:"tasks,omitempty"`
	// Restart numbers the restarts of the task or of the group, from 1.
	Restart int `json:"restart,omitempty"`
}

// NotificationOf returns the notification of the end of a run by a webhook, or by a command line
// for the shell.
func NotificationOf(text string) Notification {
	if scheme, _, ok := strings.Cut(text, "://"); ok && plainName(scheme) {
		return Notification{Webhook: Variable{Value: text}}
	}
	return Notification{Command: []string{"sh", "-c", text}}
}

// Wants reports whether to notify of an event.
func (n Notification) Wants(on NotifyOn) bool {
	return len(n.Events) == 0 && (on == NotifyEnd || on == NotifyFailure) || slices.Contains(n.Events, on) ||
		on == NotifyFailure && slices.Contains(n.Events, NotifyEnd)
}

// IsWebhook reports whether n is a webhook, and no command.
func (n Notification) IsWebhook() bool { return n.Webhook != Variable{} }

// Notifies reports whether the run has a notification of an event.
func (s *RunSpec) Notifies(on NotifyOn) bool {
	return slices.ContainsFunc(s.Notify, func(n Notification) bool { return n.Wants(on) })
}

// check checks a notification by itself.
func (n Notification) check(c *checker, path string) {
	if n.Events != nil && len(n.Events) == 0 {
		c.add(path+".events", "is empty", "name events, such as failure, or leave it out for end")
	}
	for i, on := range n.Events {
		p := indexPath(path+".events", i)
		checkOneOf(c, p, string(on), names(notifyOns))
		if slices.Contains(n.Events[:i], on) {
			c.add(p, string(on)+" is given twice", "keep one of them")
		}
	}
	switch {
	case n.IsWebhook() && n.Command != nil:
		c.add(path, "has both a webhook and a command", "write two notifications")
	case !n.IsWebhook() && n.Command == nil:
		c.add(path, "has neither a webhook nor a command", notificationRemedy)
	case n.Command != nil:
		checkCommand(c, path+".command", n.Command)
	case n.Webhook.IsReference():
		n.Webhook.From.check(c, path+".webhook", "")
	default:
		c.addError(path+".webhook", CheckWebhook(n.Webhook.Value))
	}
	if n.Secret == (Source{}) {
		return
	}
	n.Secret.check(c, path+".secret", "")
	if !n.IsWebhook() {
		c.add(path+".secret", "has no effect without a webhook", "leave it out")
	}
}

const notificationRemedy = "write for example {events: [failure], webhook: \"https://example.com/hook\"}"

// CheckWebhook returns an error if no notice can be sent to an address.
func CheckWebhook(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return valueError{"is not the address of a webhook", "write one that begins with https:// or http://"}
	}
	return nil
}

func checkNotify(c *checker, s *RunSpec) {
	if n := len(s.Notify); n > maxNotifications {
		c.add("notify", "has too many items", "write at most 16")
	}
	for i, n := range s.Notify {
		path := indexPath("notify", i) + ".events"
		if slices.Contains(n.Events, NotifyHang) && s.OnSilence == "" {
			c.add(path, "has hang, and silent tasks are not looked for", "add silence: 10m and on_silence: report")
		}
		if slices.Contains(n.Events, NotifyRestart) && !s.AutoRestart && s.RestartScope != RestartScopeGroup {
			c.add(path, "has restart, and nothing is restarted", "add auto_restart: true, or restart_scope: group")
		}
	}
}
