package runrecord

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

const (
	readmeFile  = "README"
	accountFile = "account.json"
	specFile    = "spec.yaml"
	historyFile = "history.json"
	metricsFile = "metrics.json"
	logsDir     = "logs"
)

// logName matches the file names of processes.
var logName = lazyregexp.New(`^logs/attempt_(0|[1-9][0-9]{0,8})/(0|[1-9][0-9]{0,8})/[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// member is a file to pack. Either its content or a file's path is set.
type member struct {
	name string
	text []byte
	path string
	size int64
}

// DirName returns the name of the directory in a run's archive.
func DirName(runID string) string { return filepath.Base(filepath.Dir(tasklog.RunDir(".", runID, ""))) }

// Pack writes a run's archive. logs are the directories with its processes' output. A file that
// is still being written is packed with its current content.
func Pack(w io.Writer, a *Account, histories []*historypb.History, logs []string) error {
	sources, err := texts(a, histories)
	if err != nil {
		return err
	}
	for _, dir := range logs {
		if sources, err = addLogs(sources, dir); err != nil {
			return err
		}
	}
	zip := gzip.NewWriter(w)
	archive := tar.NewWriter(zip)
	now := time.Now()
	for _, s := range sources {
		if err := s.write(archive, DirName(a.Status.RunID), now); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zip.Close())
}

// texts returns the files derived from an account.
func texts(a *Account, histories []*historypb.History) ([]member, error) {
	account, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return nil, err
	}
	list, err := historyJSON(histories)
	if err != nil {
		return nil, err
	}
	history, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	sources := []member{{name: readmeFile, text: readme(a)}, {name: accountFile, text: account}, {name: historyFile, text: history}}
	if len(a.Metrics) > 0 {
		metrics, err := json.Marshal(a.Metrics)
		if err != nil {
			return nil, err
		}
		sources = append(sources, member{name: metricsFile, text: metrics})
	}
	if a.Spec != nil {
		given := *a.Spec
		given.Ship.Archive = nil // which only this run can use
		text, err := given.YAML()
		if err != nil {
			return nil, err
		}
		sources = append(sources, member{name: specFile, text: text})
	}
	for i := range sources {
		sources[i].size = int64(len(sources[i].text))
	}
	return sources, nil
}

// readme returns the archive's description.
func readme(a *Account) []byte {
	noSpec := ""
	if a.Spec == nil {
		noSpec = "\nThere is no spec.yaml: " + a.WhyNoSpec() + ".\n"
	}
	return fmt.Appendf(nil, readmeText, spec.EscapeControl(a.Status.RunID), spec.EscapeControl(a.Status.ExecutionID),
		time.Now().UTC().Format(time.RFC3339), spec.Version, noSpec)
}

const readmeText = `Run %s of clusterrun (execution %s),
exported %s by clusterrun %s.

account.json   "status": the result, every exit, and where each task ran; "spec": the
               run's spec; "source": the git commit and the changes since then;
               "phases": how long each took, in seconds; "tasks": how each process was
               started, and its last lines
spec.yaml      the spec, in the format that clusterrun run reads
metrics.json   the metrics that tasks reported over time, if any
history.json   the histories of the workflows, in Temporal's JSON
logs/attempt_<restarts>/<rank>/
               with export --logs, the output of each process: stdout.log and stderr.log,
               error.json and result.json if it wrote them, start.json (how it was
               started), usage (the resources it used)

Directories in account.json are those of the hosts on which the tasks ran.
%s`

// historyJSON returns each history in Temporal's JSON.
func historyJSON(histories []*historypb.History) (list []json.RawMessage, err error) {
	list = make([]json.RawMessage, len(histories))
	for i, h := range histories {
		if list[i], err = protojson.Marshal(h); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// addLogs adds the process files in a directory, without links. It skips files already found in
// an earlier directory.
func addLogs(sources []member, dir string) ([]member, error) {
	attempts, err := tasklog.Attempts(dir)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, s := range sources {
		known[s.name] = true
	}
	for rank, numbers := range attempts {
		for _, n := range numbers {
			from := tasklog.ProcessDir(dir, n, rank)
			files, err := os.ReadDir(from)
			if err != nil {
				return nil, err
			}
			for _, f := range files {
				name := path.Join(logsDir, "attempt_"+strconv.Itoa(n), strconv.Itoa(rank), f.Name())
				info, err := f.Info()
				if errors.Is(err, fs.ErrNotExist) || known[name] || !logName().MatchString(name) || err == nil && !info.Mode().IsRegular() {
					continue
				}
				if err != nil {
					return nil, err
				}
				sources = append(sources, member{name: name, size: info.Size(), path: filepath.Join(from, f.Name())})
			}
		}
	}
	slices.SortStableFunc(sources, func(a, b member) int { return cmp.Compare(a.name, b.name) }) // README first, logs last
	return sources, nil
}

func (s member) write(archive *tar.Writer, dir string, when time.Time) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(dir, s.name), Size: s.size, Mode: 0o600, ModTime: when}
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	content := io.Reader(bytes.NewReader(s.text))
	if s.path != "" {
		f, err := os.OpenFile(s.path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		content = f
	}
	if _, err := io.CopyN(archive, content, s.size); err != nil {
		return fmt.Errorf("%s was truncated while it was being packed: %w", cmp.Or(s.path, s.name), err)
	}
	return nil
}
