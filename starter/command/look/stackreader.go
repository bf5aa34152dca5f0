package look

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/hosts/remotehosts"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// stackReader reads captured stacks from the hosts that have them. It never opens a path on
// this machine that another host names. The zero value reads nothing.
type stackReader struct {
	execution string
	services  []spec.HostService
	// own is the name of this machine. logs is our log directory of the run: all files below it
	// belong to the run, and any host may have written them.
	own, logs string
	// isOwn reports whether an address belongs to this machine.
	isOwn func(address string) bool
}

func newStackReader(a *cli.App, s *starter.Status) stackReader {
	own, _ := os.Hostname() // an empty name matches no host
	return stackReader{execution: s.ExecutionID, services: s.Services, own: own, logs: tasklog.RunDir(a.LogsDir(), s.RunID, s.ExecutionID), isOwn: remotehosts.IsOwnAddress}
}

// isHere reports whether a path that a host names is on this machine.
func (r stackReader) isHere(host, path string) bool {
	if host != "" && host == r.own {
		return true
	}
	if below, err := filepath.Rel(r.logs, path); r.logs != "" && err == nil && filepath.IsLocal(below) {
		return true
	}
	s := r.service(host)
	if s == nil {
		return false
	}
	address, _, err := net.SplitHostPort(s.Address)
	return err == nil && r.isOwn(address)
}

// service returns the service of a host, or nil if it has none.
func (r stackReader) service(host string) *spec.HostService {
	if at := slices.IndexFunc(r.services, func(s spec.HostService) bool { return s.Host == host }); host != "" && at >= 0 {
		return &r.services[at]
	}
	return nil
}

// maxStacks is the largest size of a file of stacks that is read, in bytes.
const maxStacks = 16 << 20

// read returns the content of a file. Its error is [fs.ErrNotExist] if the file can be read
// neither here nor from its host.
func (r stackReader) read(ctx context.Context, c stacksOfTask) (string, error) {
	if r.isHere(c.Host, c.File) {
		return readStacks(c.File)
	}
	service := r.service(c.Host)
	_, attempt, rank, ok := tasklog.SplitProcessDir(filepath.Dir(c.File))
	if service == nil || !ok {
		return "", fs.ErrNotExist
	}
	client := hostservice.NewClient(*service, r.execution)
	defer client.Close()
	text, err := client.ReadFile(ctx, rank, attempt, filepath.Base(c.File))
	return string(text), err
}

func readStacks(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var text strings.Builder
	n, err := io.Copy(&text, io.LimitReader(f, maxStacks+1))
	if err == nil && n > maxStacks {
		err = fmt.Errorf("it has more than %d MiB", maxStacks>>20)
	}
	return text.String(), err
}
