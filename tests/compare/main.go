// Program compare alternates the same work between clusterrun, a bare shell and the installed
// launchers, and writes a table:
//
//	make compare
//
// It writes the table between two marks in a page, the help topic compare.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/python"
	"github.com/clusterrun/clusterrun/tests/measure"
	"github.com/clusterrun/clusterrun/workers/embedded"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "program" {
		exit(measure.Program(os.Args[2], os.Args[3:]))
	}
	page := flag.String("page", "starter/help/topics/reference/compare.md", "`FILE` with the two marks between which the table goes")
	each := flag.Duration("each", 8*time.Second, "`TIME` for each work of each launcher, if three rounds do not take more")
	rounds := flag.Int("rounds", 15, "most rounds of each (`NUMBER`)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(compare(ctx, *page, max(1, *rounds), *each))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func compare(ctx context.Context, page string, rounds int, each time.Duration) error {
	dir, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	module, err := python.Install(dir, "")
	if err != nil {
		return err
	}
	p := &measure.Place{Dir: dir, Env: append(os.Environ(), "PYTHONPATH="+module)}
	server, err := embedded.Home{Dir: filepath.Join(p.StateDir(), "server")}.StartForeground(ctx, 0, 0, "--headless")
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop(context.WithoutCancel(ctx)) }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := &comparison{Place: p, rounds: rounds, each: each, machine: measure.ThisMachine(), program: []string{self, "program"}}
	c.add("clusterrun", "", measure.Clusterrun(os.Getenv("CLUSTERRUN_BIN"), p.StateDir(), func() []int { return []int{server.PID} }))
	c.add("a shell", "", measure.Shell())
	for _, peer := range launchers {
		c.add(peer.Name, peer.Debian, peer.Find())
	}
	if err := c.launchers(ctx); err != nil {
		return err
	}
	if err := c.libraries(ctx); err != nil {
		return err
	}
	return replace(page, c.markdown())
}
