package spec

import (
	"net/url"
	"time"
)

// Notification is the webhook to notify when a run finishes or hangs.
type Notification struct {
	Webhook Variable `json:"webhook,omitzero"`
	Secret  Source   `json:"secret,omitzero"`
}

// NotifyOn is a run event.
type NotifyOn string

// The values of [NotifyOn].
const (
	// NotifyEnd means that the run finished.
	NotifyEnd NotifyOn = "end"
	// NotifyHang means that all tasks on a host are silent.
	NotifyHang NotifyOn = "hang"
)

// MaxNotices limits a run's notices of hangs. The notice of the run's end is always sent.
const MaxNotices = 20

// Notice is a notification's content, the webhook's request body.
type Notice struct {
	// ID is the same for every attempt.
	ID    string   `json:"id"`
	Event NotifyOn `json:"event"`
	// Text is a sentence about the event, in the wording of reports.
	Text string    `json:"text"`
	Time time.Time `json:"time"`
	// Run is the run's ID, Execution the ID of its first execution, and Name its name in the spec.
	Run       string `json:"run"`
	Execution string `json:"execution"`
	Name      string `json:"name,omitempty"`
	// Verdict, ErrorType and ExitCode describe how the run ended.
	Verdict   Verdict `json:"verdict,omitempty"`
	ErrorType string  `json:"error_type,omitempty"`
	ExitCode  *int    `json:"exit_code,omitempty"`
	// Task is the task that failed first, on Host.
	Task string `json:"task,omitempty"`
	Host string `json:"host,omitempty"`
	// Tasks are the silent tasks.
	Tasks []string `json:"tasks,omitempty"`
}

// check checks the fields of a notification.
func (n Notification) check(c *checker, path string) {
	switch {
	case n.Webhook == Variable{}:
		if n.Secret != (Source{}) {
			c.add(path+".secret", "has no effect without a webhook", notificationRemedy)
		}
	case n.Webhook.IsReference():
		n.Webhook.From.check(c, path+".webhook", "")
	default:
		c.addError(path+".webhook", CheckWebhook(n.Webhook.Value))
	}
	if n.Secret != (Source{}) {
		n.Secret.check(c, path+".secret", "")
	}
}

const notificationRemedy = `for example, {webhook: "https://example.com/hook"}`

// CheckWebhook returns an error if an address cannot receive notices.
func CheckWebhook(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return valueError{"is not a webhook address", "write an address that starts with https:// or http://"}
	}
	return nil
}
