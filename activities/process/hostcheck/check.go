package hostcheck

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Check is a host check: its operator's command or, without one, a built-in check.
type Check struct {
	Name string `json:"name"`
	// Command is a command line for sh.
	Command string `json:"command,omitempty"`
	// Limit is a built-in check's limit, such as 5GiB of free space. Default: as in [Known].
	Limit string `json:"limit,omitempty"`
}

// defaults returns the default checks, which cannot fail without reason, even on a laptop. A host
// with a wrong clock would fail to accept tasks before their deadline, and keep runs waiting.
func defaults() []Check { return []Check{{Name: "disk"}, {Name: "clock"}} }

// None turns the default checks off.
const None = "none"

// Kind is a built-in check.
type Kind struct {
	Name string
	// Words describes what is checked, and Limit what the limit means. Default is the default
	// limit.
	Words, Limit, Default string
	accepts               func(limit string) error
}

// Known are the built-in checks.
var Known = []Kind{
	{"disk", "free space in the state and log directories", "SIZE", "64MiB", isSize},
	{"shm", "free space in /dev/shm, which ranks and data loaders share", "SIZE", "16MiB", isSize},
	{"clock", "difference from the server's clock", "TIME", "10s", isTime},
}

func isSize(limit string) error {
	_, err := spec.ParseSize(limit)
	return err
}

func isTime(limit string) error {
	if d, err := time.ParseDuration(limit); err != nil || d <= 0 {
		return fmt.Errorf("use a time such as 500ms")
	}
	return nil
}

var nameOfCheck = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$`)

// maxChecks limits a host's checks, and maxCommand the command line of each, in bytes.
const maxChecks, maxCommand = 16, 4096

// Parse returns the check that a flag requests: NAME=COMMAND, or NAME or NAME:LIMIT for a built-in
// check.
func Parse(text string) (Check, error) {
	name, command, own := strings.Cut(text, "=")
	known := strings.Join(names(), ", ")
	if !own {
		name, limit, limited := strings.Cut(text, ":")
		i := slices.IndexFunc(Known, func(k Kind) bool { return k.Name == name })
		switch {
		case i < 0:
			return Check{}, fmt.Errorf("%s is not one of %s; use NAME=COMMAND for your own check", spec.Quote(name), known)
		case limited:
			if err := Known[i].accepts(limit); err != nil {
				return Check{}, fmt.Errorf("the limit of %s: %w", name, err)
			}
		}
		return Check{Name: name, Limit: limit}, nil
	}
	switch {
	case !nameOfCheck.MatchString(name):
		return Check{}, fmt.Errorf("%s is not a name of at most 32 letters, digits, -, _ and dots; use NAME=COMMAND", spec.Quote(name))
	case name == None || slices.Contains(names(), name):
		return Check{}, fmt.Errorf("%s is reserved; choose another name for the check", name)
	case strings.TrimSpace(command) == "":
		return Check{}, fmt.Errorf("%s has no command; use %s=COMMAND", name, name)
	case len(command) > maxCommand || strings.ContainsRune(command, 0):
		return Check{}, fmt.Errorf("the command of %s is longer than %d bytes or contains a null byte; write a script and use its path", name, maxCommand)
	}
	return Check{Name: name, Command: command}, nil
}

// ParseAll returns a host worker's checks: the defaults and those that its flags request.
func ParseAll(texts []string) ([]Check, error) {
	checks := defaults()
	if slices.Contains(texts, None) {
		checks = nil
	}
	for _, text := range texts {
		if text == None {
			continue
		}
		c, err := Parse(text)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(checks, func(o Check) bool { return o.Name == c.Name })
		switch {
		case at < 0:
			checks = append(checks, c)
		case slices.Contains(defaults(), checks[at]):
			checks[at] = c
		default:
			return nil, fmt.Errorf("%s is given twice; remove one", c.Name)
		}
	}
	if len(checks) > maxChecks {
		return nil, fmt.Errorf("there are %d checks, but at most %d are allowed; combine some in a script", len(checks), maxChecks)
	}
	return checks, nil
}

func names() (list []string) {
	for _, k := range Known {
		list = append(list, k.Name)
	}
	return list
}

// limit returns a built-in check's limit.
func (c Check) limit() string {
	if c.Limit != "" {
		return c.Limit
	}
	for _, k := range Known {
		if k.Name == c.Name {
			return k.Default
		}
	}
	return ""
}
