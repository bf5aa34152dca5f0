package remotehosts

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// Command is the clusterrun subcommand that a host executes for a run.
const Command = "remote-host"

// notThere is the script's exit code if clusterrun is not found.
const notThere = exitcode.NotFound

const (
	// connectTimeout limits how long ssh tries to connect.
	connectTimeout = 10 * time.Second
	// aliveEvery is the interval between ssh's checks of its peer. ssh gives up after aliveMost
	// checks without an answer.
	aliveEvery = 5 * time.Second
	aliveMost  = 6
)

// commandLine returns the command that starts an agent. It makes ssh ask no questions and notice
// a dead link; the user's own arguments precede these, and win.
func commandLine(agent []string, login, script string) []string {
	argv := append([]string{}, agent...)
	if filepath.Base(agent[0]) == "ssh" {
		argv = append(argv, "-T", "-x",
			"-o", "BatchMode=yes",
			"-o", fmt.Sprintf("ConnectTimeout=%d", int(connectTimeout.Seconds())),
			"-o", fmt.Sprintf("ServerAliveInterval=%d", int(aliveEvery.Seconds())),
			"-o", fmt.Sprintf("ServerAliveCountMax=%d", aliveMost),
		)
	}
	return append(argv, login, script)
}

// script returns the command that a host executes in any shell: the program at this program's
// path, or else the first in PATH. A program without the subcommand prints its version.
func script(program string) string {
	return "exec /bin/sh -c " + Quote(fmt.Sprintf(
		`p=%s; [ -x "$p" ] || p=$(command -v clusterrun) || exit %d; "$p" %s; c=$?; [ $c = 2 ] && "$p" version >&2; exit $c`,
		Quote(program), notThere, Command))
}

// Quote quotes text as a shell word.
func Quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
