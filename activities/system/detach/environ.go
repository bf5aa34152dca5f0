package detach

import (
	"slices"
	"strings"
)

var (
	// kept contains the variables that belong to the user rather than to one shell.
	kept = []string{
		"HOME", "PATH", "SHELL", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG",
		"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
		"GOMAXPROCS", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
	}
	keptPrefixes = []string{"LC_", "CLUSTERRUN_", "TEMPORAL_"}
)

// Environ returns the part of a shell's environment that is passed to a program which serves
// several shells: the user's names and directories, PATH, the language and time zone, proxies and
// certificate authorities, and the configuration of clusterrun and Temporal.
func Environ(env []string) []string {
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(kept, name) || slices.ContainsFunc(keptPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			out = append(out, kv)
		}
	}
	return out
}
