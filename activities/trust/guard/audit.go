package guard

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Entry is an audit log line.
type Entry struct {
	Time time.Time `json:"time"`
	// What is start, refused, stop, terminate, restart, signal, stacks, tell, seal, settle,
	// unreserve or notify.
	What string `json:"what"`
	// Signers lists the principals of the key that signed the request. It is empty if the request
	// is unsigned.
	Signers []string `json:"signers,omitempty"`
	// User is the user that runs the process, and Rule the number of the rule that allows it.
	User string `json:"user,omitempty"`
	Rule int    `json:"rule,omitempty"`
	// Run and Execution are the run's workflow ID and execution ID.
	Run       string   `json:"run"`
	Execution string   `json:"execution"`
	Task      string   `json:"task,omitempty"`
	Command   []string `json:"command,omitempty"`
	Dir       string   `json:"dir,omitempty"`
	// Asked is the request that was refused, and Why the reason.
	Asked string `json:"asked,omitempty"`
	Why   string `json:"why,omitempty"`
}

// Log writes a line. If it fails, the action that the line describes must not be performed.
func (g *Guard) Log(e Entry) error {
	if g == nil {
		return nil
	}
	file := g.auditFile()
	if file == "" {
		return nil
	}
	e.Time = g.now().UTC()
	e.Command, e.Why = shortened(e.Command), shorten.Text(e.Why, maxText)
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := openAudit(file)
	if err != nil {
		return fmt.Errorf("cannot write the audit log: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("cannot write the audit log: %w", err)
	}
	return nil
}

// maxText limits how many bytes of a command or reason a line contains, because clients may send
// strings of any length.
const maxText = 4 << 10

// shortened returns the first maxText bytes of a command.
func shortened(command []string) []string {
	left := maxText
	for i, word := range command {
		if left -= len(word) + 1; left < 0 {
			return append(slices.Clone(command[:i]), shorten.Text(word, left+len(word)+1), "…")
		}
	}
	return command
}

func openAudit(file string) (*os.File, error) {
	return os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
}

// checkAudit returns an error if the audit log cannot be written.
func (g *Guard) checkAudit() error {
	file := g.auditFile()
	if file == "" {
		return nil
	}
	f, err := openAudit(file)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return f.Close()
}
