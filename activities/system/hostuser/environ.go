package hostuser

import (
	"os"
	"slices"
	"strings"
)

// defaultPath is the programs' PATH unless /etc/environment sets it.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// Environ returns the environment of a login: the variables in /etc/environment, and the user's
// name, home and shell. From the host worker's own environment, which may contain root's secrets,
// it includes only the language, the time zone, and the visible GPUs.
func (u *User) Environ(own []string) []string {
	if u == nil {
		return own
	}
	env := []string{"PATH=" + defaultPath}
	for _, kv := range own {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(passedOn, name) || strings.HasPrefix(name, "LC_") {
			env = append(env, kv)
		}
	}
	// A file that cannot be read does not set any variables.
	text, _ := os.ReadFile("/etc/environment")
	env = append(env, parseEnvironment(string(text))...)
	return append(env, "HOME="+u.Home, "USER="+u.Name, "LOGNAME="+u.Name, "SHELL="+u.Shell)
}

var passedOn = []string{"LANG", "TZ", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}

// parseEnvironment reads the lines of /etc/environment, as pam_env(8) does.
func parseEnvironment(text string) []string {
	var env []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if !ok || name == "" {
			continue
		}
		for _, quote := range []string{`"`, `'`} {
			if rest, quoted := strings.CutPrefix(value, quote); quoted {
				value = strings.TrimSuffix(rest, quote)
			}
		}
		env = append(env, name+"="+value)
	}
	return env
}
