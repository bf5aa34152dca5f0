package taskenv

import (
	"path/filepath"
	"strings"
)

// HookPrefix starts the names of Python hook directories.
const HookPrefix = "clusterrun-python-hook-"

// pythonHook prepends a hook to PYTHONPATH. It removes the hooks of outer runs, because one answer
// is enough.
func pythonHook(env map[string]string, dir string) {
	old, set := env["PYTHONPATH"]
	var entries []string
	if dir != "" {
		entries = append(entries, dir)
	}
	if old != "" {
		for _, entry := range filepath.SplitList(old) {
			if !strings.HasPrefix(filepath.Base(entry), HookPrefix) {
				entries = append(entries, entry)
			}
		}
	}
	switch {
	case len(entries) > 0:
		env["PYTHONPATH"] = strings.Join(entries, string(filepath.ListSeparator))
	case set && old != "":
		delete(env, "PYTHONPATH")
	}
}
