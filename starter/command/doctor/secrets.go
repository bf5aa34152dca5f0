package doctor

import (
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// harmlessInProfile are the fields of a profile whose values need not be hidden.
var harmlessInProfile = []string{"address", "namespace", "server_name", "endpoint", "auth"}

// mostSecrets bounds a file that is read for the secrets in it, in bytes.
const mostSecrets = 1 << 20

var (
	secretFileName = lazyregexp.New(`(?i)(key|token|secret|\.pem)`)
	profileValue   = lazyregexp.New(`(?m)^\s*"?([A-Za-z_][A-Za-z0-9_.-]*)"?\s*=\s*["']{1,3}([^"']+)["']`)
)

// knownSecrets returns the values that this host knows to be secret. They must not be in any
// file that is packed.
func knownSecrets(a *cli.App) []string {
	var known []string
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		ofServer := strings.HasPrefix(name, "TEMPORAL_GRPC_META_") || strings.HasPrefix(name, "TEMPORAL_TLS_") && strings.HasSuffix(name, "_DATA")
		if ofServer || spec.LooksSecret(name, value) {
			known = append(known, value)
		}
	}
	files := []string{a.Global.Server.APIKeyFile, a.Global.Server.CodecKeys}
	for _, name := range []string{"TEMPORAL_TLS_CLIENT_KEY_PATH", "TEMPORAL_TLS_CLIENT_CERT_PATH"} {
		files = append(files, os.Getenv(name))
	}
	for _, pattern := range []string{"*", "*/*", "*/*/*"} {
		paths, _ := filepath.Glob(filepath.Join(a.Global.StateDir, pattern))
		for _, path := range paths {
			if secretFileName().MatchString(filepath.Base(path)) && !strings.HasPrefix(path, a.LogsDir()+"/") {
				files = append(files, path)
			}
		}
	}
	for _, path := range files {
		text := secretText(path)
		known = append(known, text)
		known = append(known, strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n:=", r) })...)
	}
	profiles := cmp.Or(a.Global.Server.ConfigFile, os.Getenv("TEMPORAL_CONFIG_FILE"))
	if dir, err := os.UserConfigDir(); err == nil && profiles == "" {
		profiles = filepath.Join(dir, "temporalio", "temporal.toml")
	}
	for _, m := range profileValue().FindAllStringSubmatch(secretText(profiles), -1) {
		// All other fields of a profile are headers, keys and certificates.
		if !slices.Contains(harmlessInProfile, m[1]) && !strings.HasSuffix(m[1], "_path") {
			known = append(known, m[2])
		}
	}
	var ready struct {
		UI string `json:"ui"`
	}
	if json.Unmarshal([]byte(secretText(filepath.Join(a.ServerDir(), "ready.json"))), &ready) == nil {
		if u, err := url.Parse(ready.UI); err == nil {
			known = append(known, u.Query().Get("token"))
		}
	}
	return slices.DeleteFunc(known, func(value string) bool { return strings.TrimSpace(value) == "" })
}

// secretText returns the text of a file of at most mostSecrets bytes, or "" if it cannot be
// read.
func secretText(path string) string {
	info, err := os.Stat(path)
	if path == "" || err != nil || !info.Mode().IsRegular() || info.Size() > mostSecrets {
		return ""
	}
	b, _ := os.ReadFile(path)
	return string(b)
}

// shortValue is the length from which the value of a variable is always hidden. Shorter values
// occur elsewhere by chance, and are hidden only if they look secret.
const shortValue = 8

// secretsOf returns the values of variables in a spec, and the values that it refers to, if
// this host has them.
func secretsOf(s *spec.RunSpec) []string {
	if s == nil {
		return nil
	}
	var known []string
	note := func(env spec.Env) {
		for name, v := range env {
			switch {
			case v.From.FromFile != "":
				known = append(known, secretText(v.From.FromFile))
			case v.From.FromEnv != "":
				known = append(known, os.Getenv(v.From.FromEnv))
			case len(v.Value) >= shortValue || spec.LooksSecret(name, v.Value):
				known = append(known, v.Value)
			}
		}
	}
	note(s.Env)
	for _, t := range s.Tasks {
		note(t.Env)
		for _, o := range t.Overrides {
			note(o.Env)
		}
	}
	return known
}
