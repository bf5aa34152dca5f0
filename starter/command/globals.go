package command

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
	sdklog "go.temporal.io/sdk/log"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// globals are the flags of every subcommand. Those that name a server are
// called as in the temporal CLI.
type globals struct {
	server   connect.Options
	stateDir string
	json     bool
	logLevel string
	color    string
}

func (g *globals) register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&g.server.Address, "address", "", "`HOST:PORT` of the Temporal server; default: TEMPORAL_ADDRESS, the profile's, or the embedded server")
	f.StringVar(&g.server.Namespace, "namespace", "", "Temporal `NAMESPACE`; default: TEMPORAL_NAMESPACE, the profile's, or \"default\"")
	f.StringVar(&g.server.Profile, "profile", "", "`NAME` of a profile in the temporal CLI's configuration file")
	f.StringVar(&g.server.ConfigFile, "config-file", "", "`FILE` with profiles; default: that of the temporal CLI")
	f.StringVar(&g.server.CodecKeys, "codec-keys", os.Getenv("CLUSTERRUN_CODEC_KEYS"), "`FILE` of keys that encrypt what goes through the server; default: $CLUSTERRUN_CODEC_KEYS. See `clusterrun codec-server --help`")
	f.StringVar(&g.server.APIKeyFile, "api-key-file", os.Getenv("CLUSTERRUN_API_KEY_FILE"), "`FILE` with the API key of the server, read for each request; default: $CLUSTERRUN_API_KEY_FILE, or the key in TEMPORAL_API_KEY")
	f.StringVar(&g.stateDir, "state-dir", "", "`DIR` for databases, journals and logs; default: $CLUSTERRUN_STATE_DIR, $XDG_STATE_HOME/clusterrun, ~/.local/state/clusterrun, or without a home directory one below $TMPDIR or /tmp")
	f.BoolVar(&g.json, "json", false, "print the result as JSON on stdout")
	f.StringVar(&g.logLevel, "log-level", "error", "`LEVEL` of the log on stderr: debug, info, warn, error")
	f.StringVar(&g.color, "color", "auto", "`WHEN` to colour: auto, always, never")
}

// prepare checks the global flags, before any subcommand runs.
func (a *app) prepare() error {
	if _, err := a.level(); err != nil {
		return err
	}
	switch a.global.color {
	case "auto":
		a.color.on = isTerminal(a.err) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	case "always":
		a.color.on = true
	case "never":
	default:
		return usagef("--color %q: give auto, always or never", a.global.color)
	}
	if err := checkNames(a); err != nil {
		return err
	}
	if a.global.stateDir == "" {
		if dir := defaultStateDir(); dir != "" {
			a.global.stateDir = dir
		} else if err := keepTemporarily(a); err != nil {
			return err
		}
	}
	dir, err := filepath.Abs(a.global.stateDir)
	if err != nil {
		return fmt.Errorf("--state-dir %s: %w", a.global.stateDir, err)
	}
	a.global.stateDir = dir
	for _, file := range []*string{&a.global.server.CodecKeys, &a.global.server.APIKeyFile} {
		if *file == "" {
			continue
		}
		// Host workers have directories of their own.
		if *file, err = filepath.Abs(*file); err != nil {
			return err
		}
	}
	return nil
}

// checkNames refuses names that no server has, and that cannot be told from others when read.
func checkNames(a *app) (err error) {
	a.given.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "queue", "namespace":
			value := f.Value.String()
			if value == "" || utf8.ValidString(value) && strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
				err = usagef("--%s %q: give a name of ASCII characters without spaces", f.Name, value)
			}
		case "host-name":
			if wrong := checkHostName(f.Value.String()); wrong != nil {
				err = wrong
			}
		}
	})
	return err
}

// checkHostName refuses names of this host that the address of a task cannot have.
func checkHostName(name string) error {
	if spec.IsLoopback(name) {
		return usagef("--host-name %s means every machine; give a name that others know this one by", name)
	}
	if !utf8.ValidString(name) {
		return nil // checkUTF8 refuses it
	}
	if host, _, err := spec.SplitAddress(net.JoinHostPort(name, "1")); err != nil || host != name {
		return usagef("--host-name %q: give a name of letters, digits, \".\", \"-\" and \"_\", or an address, as specs have it", name)
	}
	return nil
}

// checkUTF8 refuses flags, and a state directory, that would become others on their
// way: they are written as JSON, for the host worker, for the run and for those who
// come later.
func (a *app) checkUTF8() error {
	err := checkPath("the state directory", a.global.stateDir, "give another with --state-dir")
	if a.given != nil {
		a.given.Visit(func(f *pflag.Flag) {
			if !utf8.ValidString(f.Value.String()) {
				err = usagef("--%s %q is not valid UTF-8, and would be changed on its way to hosts and the server; give another", f.Name, f.Value)
			}
		})
	}
	return err
}

func checkPath(what, path, remedy string) error {
	if utf8.ValidString(path) {
		return nil
	}
	return usagef("%s %q is not valid UTF-8, and files would go elsewhere; %s", what, path, remedy)
}

// Where things are kept below the state directory.
func (a *app) serverDir() string { return filepath.Join(a.global.stateDir, "server") }
func (a *app) runsDir() string   { return filepath.Join(a.global.stateDir, "runs") }
func (a *app) workerDir() string { return filepath.Join(a.global.stateDir, "worker") }
func (a *app) devDir() string    { return filepath.Join(a.global.stateDir, "dev") }
func (a *app) logsDir() string   { return filepath.Join(a.global.stateDir, "logs") }
func (a *app) debug() bool       { return a.global.logLevel == "debug" }

func (a *app) level() (slog.Level, error) {
	var l slog.Level
	switch a.global.logLevel {
	case "debug", "info", "warn", "error":
		return l, l.UnmarshalText([]byte(a.global.logLevel))
	}
	return l, usagef("--log-level %q: give debug, info, warn or error", a.global.logLevel)
}

// logger is for the SDK.
func (a *app) logger() sdklog.Logger {
	level, err := a.level()
	if err != nil {
		level = slog.LevelError
	}
	return sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(logWriter{a}, &slog.HandlerOptions{Level: level})))
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	if _, ok := w.(*screen); ok {
		return true
	}
	f := tasklog.FileOf(w)
	return f != nil && pty.Is(f)
}

// palette colours text where that is wanted.
type palette struct{ on bool }

func (p palette) bad(s string) string  { return p.in("31", s) }
func (p palette) good(s string) string { return p.in("32", s) }
func (p palette) dim(s string) string  { return p.in("2", s) }

func (p palette) in(code, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
