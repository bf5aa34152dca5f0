package cli

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Confirm lists the pending changes and requests confirmation. If the user declines, it returns an
// error with the message refused.
func (a *App) Confirm(items []string, question, refused string) error {
	if a.Global.JSON || !pty.Is(tasklog.FileOf(a.In)) || !IsTerminal(a.Err) {
		return Usagef("cannot ask for confirmation without a terminal; add --yes if you mean all %d: %s", len(items), shorten.List(items, 5))
	}
	for _, item := range items {
		fmt.Fprintln(a.Err, item)
	}
	fmt.Fprintf(a.Err, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(a.In).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return &ExitError{Code: exitcode.Usage, Cause: errors.New(refused)}
	}
	return nil
}
