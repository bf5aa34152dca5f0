package account

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

	"github.com/clusterrun/clusterrun/activities/tasklog"
	"github.com/clusterrun/clusterrun/workflows/lazyregexp"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Manifest is the first file of an export.
type Manifest struct {
	// Format is [Format], and Version that of the form of the file.
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Clusterrun is the version that wrote it.
	Clusterrun  string    `json:"clusterrun"`
	RunID       string    `json:"run_id"`
	ExecutionID string    `json:"execution_id"`
	Exported    time.Time `json:"exported"`
	// Files are those that follow, in their order.
	Files []Entry `json:"files"`
}

// Entry is a file of an export.
type Entry struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// Format tells an export from other files, and formatVersion its form from others.
const (
	Format        = "clusterrun export"
	formatVersion = 1
)

const (
	manifestFile = "manifest.json"
	accountFile  = "account.json"
	historyFile  = "history.json"
	logsDir      = "logs"
)

// logName matches the names of files of processes.
var logName = lazyregexp.New(`^logs/attempt_(0|[1-9][0-9]{0,8})/(0|[1-9][0-9]{0,8})/[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// source is a file that is packed: what it is in memory, or where.
type source struct {
	entry Entry
	text  []byte
	path  string
}

// Pack writes a run to a file. logs are the directories with the output of its processes; of a
// file that is being written, what it has now.
func Pack(w io.Writer, a *Account, histories []*historypb.History, logs []string) error {
	account, err := json.Marshal(a)
	if err != nil {
		return err
	}
	history, err := historyJSON(histories)
	if err != nil {
		return err
	}
	sources := []source{
		{entry: Entry{accountFile, int64(len(account))}, text: account},
		{entry: Entry{historyFile, int64(len(history))}, text: history},
	}
	for _, dir := range logs {
		if sources, err = addLogs(sources, dir); err != nil {
			return err
		}
	}
	m := Manifest{
		Format: Format, Version: formatVersion, Clusterrun: spec.Version,
		RunID: a.Status.RunID, ExecutionID: a.Status.ExecutionID, Exported: time.Now().UTC().Truncate(time.Second),
	}
	for _, s := range sources {
		m.Files = append(m.Files, s.entry)
	}
	manifest, err := json.Marshal(m)
	if err != nil {
		return err
	}
	sources = slices.Insert(sources, 0, source{entry: Entry{manifestFile, int64(len(manifest))}, text: manifest})
	zip := gzip.NewWriter(w)
	archive := tar.NewWriter(zip)
	for _, s := range sources {
		if err := s.write(archive, m.Exported); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zip.Close())
}

// historyJSON returns the histories as a list, in Temporal's JSON.
func historyJSON(histories []*historypb.History) ([]byte, error) {
	list := make([]json.RawMessage, len(histories))
	for i, h := range histories {
		text, err := protojson.Marshal(h)
		if err != nil {
			return nil, err
		}
		list[i] = text
	}
	return json.Marshal(list)
}

// addLogs adds the files of the processes in a directory, and no links. What an earlier
// directory has is not added again.
func addLogs(sources []source, dir string) ([]source, error) {
	attempts, err := tasklog.Attempts(dir)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, s := range sources {
		known[s.entry.Name] = true
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
				sources = append(sources, source{entry: Entry{name, info.Size()}, path: filepath.Join(from, f.Name())})
			}
		}
	}
	slices.SortStableFunc(sources[2:], func(a, b source) int { return cmp.Compare(a.entry.Name, b.entry.Name) })
	return sources, nil
}

func (s source) write(archive *tar.Writer, when time.Time) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: s.entry.Name, Size: s.entry.Size, Mode: 0o600, ModTime: when}
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
	if _, err := io.CopyN(archive, content, s.entry.Size); err != nil {
		return fmt.Errorf("%s has become shorter: %w", cmp.Or(s.path, s.entry.Name), err)
	}
	return nil
}
