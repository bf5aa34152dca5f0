package devserver

import (
	"fmt"
	"net"
	"strconv"
	"time"
)

// NoLifeline is the value of Options.LifelineFD for a server without a lifeline.
const NoLifeline = -1

// minRetention is the minimum that Temporal accepts for a namespace.
const minRetention = time.Hour

// Options are the settings of the command line.
type Options struct {
	Database   string        // a file
	IP         string        // a loopback address
	Port       int           // of the frontend, or 0 for any free port
	UIPort     int           // of the Web UI, or 0 for any free port
	Headless   bool          // no Web UI
	Namespace  string        // created if it is not in the database
	Retention  time.Duration // how long closed runs stay in a new namespace
	IdleExit   time.Duration // 0 for never
	ReadyFile  string        // "": none
	Key        string        // the file with the clients' key, or ""
	Metrics    string        // HOST:PORT of the metrics, or ""
	UIFor      string        // the address of a running server, to serve only its Web UI
	LifelineFD int           // an inherited file descriptor, or NoLifeline
	LogLevel   string
	JSON       bool // the ready line as JSON
}

// DefaultOptions returns the server on Temporal's usual ports. The database must still be set.
func DefaultOptions() Options {
	return Options{
		IP:         "127.0.0.1",
		Port:       7233,
		UIPort:     8233,
		Namespace:  "default",
		Retention:  90 * 24 * time.Hour,
		LifelineFD: NoLifeline,
		LogLevel:   "error",
	}
}

// usageError is a mistake in the command line. It differs from a failure by its exit code.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

func (o *Options) validate() error {
	if err := o.validateIP(); err != nil {
		return err
	}
	if err := validatePort("--port", o.Port); err != nil {
		return err
	}
	if !o.Headless {
		if err := validatePort("--ui-port", o.UIPort); err != nil {
			return err
		}
		if o.Port != 0 && o.Port == o.UIPort {
			return usagef("--port and --ui-port are both %d: the Web UI needs its own port", o.Port)
		}
	}
	if o.Metrics != "" {
		_, port, err := net.SplitHostPort(o.Metrics)
		if n, perr := strconv.Atoi(port); err != nil || perr != nil || n < 1 || n > maxPort {
			return usagef("--metrics %q: use HOST:PORT, such as 127.0.0.1:9465", o.Metrics)
		}
	}
	switch {
	case o.Namespace == "":
		return usagef("--namespace is empty")
	case o.Namespace == systemNamespace:
		return usagef("--namespace %s is reserved for the server", systemNamespace)
	case o.Retention < minRetention:
		return usagef("--retention %s is too short: at least %s", o.Retention, minRetention)
	case o.IdleExit < 0:
		return usagef("--idle-exit %s is negative: use a duration, or 0 for never", o.IdleExit)
	case o.LifelineFD < NoLifeline:
		return usagef("--lifeline-fd %d is not a file descriptor", o.LifelineFD)
	case o.Database == "" && o.UIFor == "":
		return usagef("--db is missing; name a file")
	}
	return nil
}

// A client of the server can start a run, which executes commands as this user. So the server never
// listens where another machine could reach it.
func (o *Options) validateIP() error {
	ip := net.ParseIP(o.IP)
	if ip == nil {
		return usagef("--ip %q is not an IP address: use 127.0.0.1 or ::1", o.IP)
	}
	if !ip.IsLoopback() {
		return usagef("--ip %s is not a loopback address: this server is for one user, and any client with its key, or without --key, can run commands as you. To share a server between machines, use a Temporal cluster", o.IP)
	}
	return nil
}

const maxPort = 65535

func validatePort(flag string, port int) error {
	if port < 0 || port > maxPort {
		return usagef("%s %d is not a port: use 1 to 65535, or 0 for any free one", flag, port)
	}
	return nil
}
