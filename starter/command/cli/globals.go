package cli

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

// Globals are the global flags. The server flags have the same names as the temporal CLI's.
type Globals struct {
	Server   connect.Options
	StateDir string
	JSON     bool
	logLevel string
	Color    string
}

func (g *Globals) Register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.BoolP("help", "h", false, "describe the command, with examples and exit codes")
	f.StringVar(&g.Server.Address, "address", "", "use the Temporal server at `HOST:PORT`; default: TEMPORAL_ADDRESS, the profile's, or the embedded server")
	f.StringVar(&g.Server.Namespace, "namespace", "", "use this `NAMESPACE` of the server; default: TEMPORAL_NAMESPACE, the profile's, or \"default\"")
	f.StringVar(&g.Server.Profile, "profile", "", "use the profile `NAME` of the temporal CLI's configuration file")
	f.StringVar(&g.Server.ConfigFile, "config-file", "", "read profiles from `FILE`; default: the temporal CLI's")
	f.StringVar(&g.Server.CodecKeys, "codec-keys", os.Getenv("CLUSTERRUN_CODEC_KEYS"), "encrypt data sent to the server with the keys in `FILE`; default: $CLUSTERRUN_CODEC_KEYS. See `clusterrun server codec --help`")
	f.StringVar(&g.Server.APIKeyFile, "api-key-file", os.Getenv("CLUSTERRUN_API_KEY_FILE"), "read the server's API key from `FILE` for each request; default: $CLUSTERRUN_API_KEY_FILE, or the key in TEMPORAL_API_KEY")
	f.StringVar(&g.StateDir, "state-dir", "", "keep databases, journals and logs in `DIR`; default: $CLUSTERRUN_STATE_DIR, $XDG_STATE_HOME/clusterrun, ~/.local/state/clusterrun, or a directory in $TMPDIR or /tmp if there is no home directory")
	f.BoolVar(&g.JSON, "json", false, "print the result as JSON on stdout")
	f.StringVar(&g.logLevel, "log-level", "error", "print log messages of `LEVEL` and above to stderr: debug, info, warn, error")
	f.StringVar(&g.Color, "color", "auto", "colour messages `WHEN`: auto, always, never")
}

// Prepare checks the global flags. It is called before a subcommand runs.
func (a *App) Prepare() error {
	if _, err := a.level(); err != nil {
		return err
	}
	switch a.Global.Color {
	case "auto":
		a.Color.On = IsTerminal(a.Err) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	case "always":
		a.Color.On = true
	case "never":
	default:
		return Usagef("--color %q: use auto, always or never", a.Global.Color)
	}
	if err := checkNames(a); err != nil {
		return err
	}
	if a.Global.StateDir == "" {
		a.Global.StateDir, a.noHome = defaultStateDir()
		if a.Global.StateDir == "" {
			if err := keepTemporarily(a); err != nil {
				return err
			}
		}
	}
	dir, err := filepath.Abs(a.Global.StateDir)
	if err != nil {
		return fmt.Errorf("--state-dir %s: %w", a.Global.StateDir, err)
	}
	a.Global.StateDir = dir
	for _, file := range []*string{&a.Global.Server.CodecKeys, &a.Global.Server.APIKeyFile} {
		if *file == "" {
			continue
		}
		// Host workers run in their own directories.
		if *file, err = filepath.Abs(*file); err != nil {
			return err
		}
	}
	return nil
}

// checkNames checks --queue, --namespace and --host-name. A queue or namespace must consist of
// visible ASCII characters, so that a reader cannot mistake it for another. CheckUTF8 refuses
// names that are not valid UTF-8.
func checkNames(a *App) (err error) {
	a.Given.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "queue", "namespace":
			value := f.Value.String()
			if value == "" || utf8.ValidString(value) && strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
				err = Usagef("--%s %q: use a name of ASCII characters without spaces", f.Name, value)
			}
		case "host-name":
			if wrong := checkHostName(f.Value.String()); wrong != nil {
				err = wrong
			}
		}
	})
	return err
}

// checkHostName refuses host names that cannot be part of a task's address.
func checkHostName(name string) error {
	if spec.IsLoopback(name) {
		return Usagef("--host-name %s means every machine; use a name by which other machines know this one", name)
	}
	if !utf8.ValidString(name) {
		return nil // CheckUTF8 refuses it
	}
	if host, _, err := spec.SplitAddress(net.JoinHostPort(name, "1")); err != nil || host != name {
		return Usagef(`--host-name %q: use a name of letters, digits, ".", "-" and "_", or an address, as in specs`, name)
	}
	return nil
}

// CheckUTF8 refuses flags and a state directory that are not valid UTF-8, because they are sent
// and stored as JSON, which would change them.
func (a *App) CheckUTF8() error {
	err := CheckPath("the state directory", a.Global.StateDir, "use another with --state-dir")
	if a.Given != nil {
		a.Given.Visit(func(f *pflag.Flag) {
			if !utf8.ValidString(f.Value.String()) {
				err = Usagef("--%s %q is not valid UTF-8, and would be changed on its way to hosts and the server; use another", f.Name, f.Value)
			}
		})
	}
	return err
}

func CheckPath(what, path, remedy string) error {
	if utf8.ValidString(path) {
		return nil
	}
	return Usagef("%s %q is not valid UTF-8, so files would go elsewhere; %s", what, path, remedy)
}

// These methods return directories in the state directory.
func (a *App) ServerDir() string { return filepath.Join(a.Global.StateDir, "server") }
func (a *App) RunsDir() string   { return filepath.Join(a.Global.StateDir, "runs") }
func (a *App) WorkerDir() string { return filepath.Join(a.Global.StateDir, "worker") }
func (a *App) DevDir() string    { return filepath.Join(a.Global.StateDir, "dev") }
func (a *App) LogsDir() string   { return filepath.Join(a.Global.StateDir, "logs") }
func (a *App) Debug() bool       { return a.Global.logLevel == "debug" }

func (a *App) level() (slog.Level, error) {
	var l slog.Level
	switch a.Global.logLevel {
	case "debug", "info", "warn", "error":
		return l, l.UnmarshalText([]byte(a.Global.logLevel))
	}
	return l, Usagef("--log-level %q: use debug, info, warn or error", a.Global.logLevel)
}

// Logger returns the logger for the SDK. It writes to stderr.
func (a *App) Logger() sdklog.Logger {
	level, err := a.level()
	if err != nil {
		level = slog.LevelError
	}
	return sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(logWriter{a}, &slog.HandlerOptions{Level: level})))
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	if _, ok := w.(*Screen); ok {
		return true
	}
	f := tasklog.FileOf(w)
	return f != nil && pty.Is(f)
}

// palette colors text if On is set.
type palette struct{ On bool }

func (p palette) Bad(s string) string  { return p.in("31", s) }
func (p palette) Good(s string) string { return p.in("32", s) }
func (p palette) Dim(s string) string  { return p.in("2", s) }

func (p palette) in(code, s string) string {
	if !p.On {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
