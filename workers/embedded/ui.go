package embedded

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// StartUI serves a Web UI for a server without one, on a port, or on any free one if port is 0. The
// result contains the link that admits a browser.
func (h Home) StartUI(ctx context.Context, s *Instance, port int) (*Foreground, error) {
	path, err := h.program()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "--ui-for", s.Address, "--namespace", s.Namespace, "--key", h.Key(),
		"--ui-port", strconv.Itoa(port), "--lifeline-fd", "3", "--json")
	cmd.Dir, cmd.Env = h.Dir, environment()
	var said bytes.Buffer
	cmd.Stderr = &said
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	f, theirs, err := foreground(cmd)
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	if err := cmd.Start(); err != nil {
		f.lifeline.Close()
		return nil, fmt.Errorf("start the Web UI: %w", err)
	}
	defer context.AfterFunc(ctx, func() { f.lifeline.Close() })()
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &f.Instance) != nil {
		f.lifeline.Close()
		err := cmd.Wait()
		return nil, fmt.Errorf("the Web UI did not start (%w): %s", err, strings.TrimPrefix(strings.TrimSpace(said.String()), ProgramName+": "))
	}
	go func() {
		f.exited <- cmd.Wait()
		close(f.exited)
	}()
	return f, nil
}
