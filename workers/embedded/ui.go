package embedded

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// UI is the Web UI of a server that has none of its own. It ends with the process that
// started it.
type UI struct {
	// URL lets whoever opens it in.
	URL      string
	lifeline *os.File
	exited   chan error
}

// StartUI serves a Web UI for the server on a port; 0: any that is free.
func (h Home) StartUI(ctx context.Context, s *Server, port int) (*UI, error) {
	path, err := h.program()
	if err != nil {
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := exec.Command(path, "--ui-for", s.Address, "--namespace", s.Namespace, "--key", h.Key(),
		"--ui-port", strconv.Itoa(port), "--lifeline-fd", "3", "--json")
	cmd.Dir, cmd.Env = h.Dir, environment()
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for us
	var said bytes.Buffer
	cmd.Stderr = &said
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("start the Web UI: %w", err)
	}
	defer context.AfterFunc(ctx, func() { ours.Close() })()
	line, readErr := bufio.NewReader(stdout).ReadBytes('\n')
	var ready Server
	if readErr != nil || json.Unmarshal(line, &ready) != nil {
		ours.Close()
		err := cmd.Wait()
		return nil, fmt.Errorf("the Web UI did not start (%w): %s", err, strings.TrimPrefix(strings.TrimSpace(said.String()), ProgramName+": "))
	}
	u := &UI{URL: ready.UI, lifeline: ours, exited: make(chan error, 1)}
	go func() {
		u.exited <- cmd.Wait()
		close(u.exited)
	}()
	return u, nil
}

// Exited gives the error with which the Web UI has ended, and is closed then.
func (u *UI) Exited() <-chan error { return u.exited }

// Stop ends the Web UI and waits for that.
func (u *UI) Stop() {
	u.lifeline.Close()
	<-u.exited
}
