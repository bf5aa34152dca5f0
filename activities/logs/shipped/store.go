package shipped

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Store contains archives and the directories of runs.
type Store struct {
	// Volatile reports whether a power cut may lose the content.
	Volatile bool

	dir string
	mu  sync.Mutex
	// locks contains a channel for each digest, with an element while the digest is locked.
	locks map[string]chan struct{}
	// placing is held while a run's directory is renamed into place and its note is written.
	placing sync.Mutex
}

// Open returns the store in a state directory. The store is created on first use.
func Open(stateDir string) *Store {
	return &Store{dir: filepath.Join(stateDir, "shipped"), locks: map[string]chan struct{}{}}
}

func (s *Store) archives() string             { return filepath.Join(s.dir, "archives") }
func (s *Store) archive(digest string) string { return filepath.Join(s.archives(), digest) }
func (s *Store) uploads() string              { return filepath.Join(s.dir, "uploads") }
func (s *Store) runs() string                 { return filepath.Join(s.dir, "runs") }
func (s *Store) unfinished() string           { return filepath.Join(s.dir, "new") }

// Dir returns a run's directory.
func (s *Store) Dir(run runkey.Run) string {
	return tasklog.RunDir(s.runs(), run.WorkflowID, run.RunID)
}

// DirOf returns the directory used by the run with the given log directory. This is either the
// run's own directory or, if the run is the trial that last used a sweep's directory, the sweep's.
func (s *Store) DirOf(run runkey.Run, logs string) string {
	own := s.Dir(run)
	sweep, _, ok := spec.SplitTrialID(run.WorkflowID)
	if !ok || exists(own) {
		return own
	}
	notes, _ := filepath.Glob(filepath.Join(filepath.Dir(s.Dir(runkey.Run{WorkflowID: sweep})), "*.json"))
	for _, path := range notes {
		var u Unpacked
		if readJSON(path, &u) == nil && u.Logs == logs {
			return s.Dir(u.Run)
		}
	}
	return own
}

func (s *Store) lockOf(digest string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.locks[digest]
	if !ok {
		l = make(chan struct{}, 1)
		s.locks[digest] = l
	}
	return l
}

// Lock prevents other callers from writing or removing the files of a digest until unlock is
// called.
func (s *Store) Lock(ctx context.Context, digest string) (unlock func(), err error) {
	l := s.lockOf(digest)
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Has reports whether the store contains an archive.
func (s *Store) Has(digest string) bool {
	_, err := os.Lstat(s.archive(digest))
	return err == nil
}

// Read opens an archive.
func (s *Store) Read(digest string) (*os.File, error) { return os.Open(s.archive(digest)) }

// Put stores an archive that it reads from r, unless it is already stored.
func (s *Store) Put(a spec.Archive, r io.Reader) error {
	if s.Has(a.Digest) {
		return nil
	}
	in, err := s.Create(a)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := io.Copy(in, r); err != nil {
		return err
	}
	return in.Commit()
}

// Incoming is an archive that is being written.
type Incoming struct {
	want spec.Archive
	path string
	file *os.File
	sum  hash.Hash
	n    int64
}

// Create starts writing an archive.
func (s *Store) Create(a spec.Archive) (*Incoming, error) {
	for _, dir := range []string{s.unfinished(), s.archives()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(s.unfinished(), "archive-*")
	if err != nil {
		return nil, err
	}
	return &Incoming{want: a, path: s.archive(a.Digest), file: f, sum: sha256.New()}, nil
}

// Len returns the number of bytes written.
func (in *Incoming) Len() int64 { return in.n }

// Write implements [io.Writer].
func (in *Incoming) Write(b []byte) (int, error) {
	if in.n+int64(len(b)) > int64(in.want.Size) {
		return 0, fmt.Errorf("the archive exceeds its %d bytes", in.want.Size)
	}
	n, err := in.file.Write(b)
	in.n += int64(n)
	_, _ = in.sum.Write(b[:n]) // never fails
	return n, err
}

// DigestError reports that an archive is not the expected one.
type DigestError struct{ Want, Got string }

func (e *DigestError) Error() string {
	return fmt.Sprintf("the archive has the digest %s, but the run ships %s", e.Got, e.Want)
}

// If the archive is the expected one, Commit moves it into the store.
func (in *Incoming) Commit() error {
	if got := hex.EncodeToString(in.sum.Sum(nil)); got != in.want.Digest {
		return &DigestError{Want: in.want.Digest, Got: got}
	}
	if err := in.file.Sync(); err != nil {
		return err
	}
	return os.Rename(in.file.Name(), in.path)
}

// Reset discards what has been written.
func (in *Incoming) Reset() error {
	if err := in.file.Truncate(0); err != nil {
		return err
	}
	in.n = 0
	in.sum.Reset()
	_, err := in.file.Seek(0, io.SeekStart)
	return err
}

// Close removes the archive unless it was committed.
func (in *Incoming) Close() {
	_ = in.file.Close()
	_ = os.Remove(in.file.Name()) // a committed file has another name
}

// Upload describes a run that fetches its archive from this host.
type Upload struct {
	WorkflowID string `json:"run"`
	// Namespace is the run's namespace, and Server its server's identity, if known.
	Namespace string `json:"namespace,omitempty"`
	Server    string `json:"server,omitempty"`
	// Time is the archive's arrival time. Keep sets it.
	Time time.Time `json:"time"`
}

// Keep keeps an archive until the given run has ended.
func (s *Store) Keep(digest string, u Upload) error {
	if err := os.MkdirAll(s.uploads(), 0o700); err != nil {
		return err
	}
	u.Time = time.Now()
	b, err := json.Marshal(u)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(u.WorkflowID + "\x00" + u.Server))
	return atomicfile.Write(filepath.Join(s.uploads(), digest+"-"+hex.EncodeToString(sum[:12])+".json"), b, 0o600)
}

// Unpacked describes a run's directory, and is stored as the note next to it.
type Unpacked struct {
	// Run is the run. A sweep's trials may share a directory, which has the sweep's ID and first
	// execution.
	Run    runkey.Run `json:"run"`
	Digest string     `json:"digest"`
	// Statement is the ID of the spec for which the directory was unpacked, or empty if there is no
	// policy.
	Statement string `json:"statement,omitempty"`
	// Logs is the log directory of the latest run that uses the directory, or empty if that run
	// does not keep logs. The directory is kept for as long as these logs.
	Logs string `json:"logs,omitempty"`
}

// TakenError reports that a run's directory has different content, which the run's tasks must not
// execute.
type TakenError struct{ Dir, Why string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("%s already exists, %s; start the run again", e.Dir, e.Why)
}

// check returns an error if a run's directory is not the one described by u, or does not belong to
// the user. It compares u with the note next to the directory, which the user cannot change. The
// error is fs.ErrNotExist if the directory does not exist.
func (s *Store) check(u Unpacked, user *hostuser.User) error {
	dir := s.Dir(u.Run)
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	uid := uint32(os.Geteuid())
	if user != nil {
		uid = user.UID
	}
	var there Unpacked
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case readJSON(dir+".json", &there) != nil:
		return &TakenError{dir, "of an unknown run"}
	case there.Run != u.Run:
		return &TakenError{dir, "of another run"}
	case there.Digest != u.Digest:
		return &TakenError{dir, "with different content"}
	case there.Statement != u.Statement:
		return &TakenError{dir, "for another spec"}
	case !ok || stat.Uid != uid:
		return &TakenError{dir, "as another user's"}
	}
	return nil
}

// Reuse prepares a run's already unpacked directory. The error is fs.ErrNotExist if the directory
// does not exist. The digest must be locked. A nil user is the user of this process.
func (s *Store) Reuse(u Unpacked, user *hostuser.User) error {
	s.placing.Lock()
	defer s.placing.Unlock()
	if err := s.check(u, user); err != nil {
		return err
	}
	return s.note(u)
}

func (s *Store) note(u Unpacked) error {
	b, err := json.Marshal(u)
	if err != nil {
		return err
	}
	return atomicfile.Write(s.Dir(u.Run)+".json", b, 0o600)
}

// Unpack unpacks a stored archive of the given size into a run's directory, unless it is already
// unpacked. The digest must be locked. progress is called with the number of bytes unpacked so far.
// A damaged archive is removed. The files belong to user; nil is the user of this process.
func (s *Store) Unpack(ctx context.Context, u Unpacked, size int64, user *hostuser.User, progress func(n int64)) (err error) {
	if err := s.Reuse(u, user); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := s.Dir(u.Run)
	in, err := s.Read(u.Digest)
	if err != nil {
		return err
	}
	defer in.Close()
	for _, parent := range []string{s.unfinished(), filepath.Dir(dir)} {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp(s.unfinished(), "run-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeAll(tmp))
		}
	}()
	sum := sha256.New()
	err = unpack(ctx, io.TeeReader(in, io.MultiWriter(sum, told(progress))), size, tmp)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_, _ = io.Copy(sum, in) // the rest, in case unpacking failed
	if got := hex.EncodeToString(sum.Sum(nil)); got != u.Digest {
		return errors.Join(&DigestError{Want: u.Digest, Got: got}, os.Remove(s.archive(u.Digest)))
	}
	if err == nil && user != nil {
		err = errors.Join(giveTo(user, tmp), s.open(dir))
	}
	if err == nil && !s.Volatile {
		err = syncAll(tmp)
	}
	if err != nil {
		return err
	}
	s.placing.Lock()
	defer s.placing.Unlock()
	if err := s.check(u, user); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, removeAll(tmp)) // another process was faster
	}
	if err := s.note(u); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

// giveTo changes the owner of a tree that no other user can have accessed yet.
func giveTo(user *hostuser.User, dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(user.UID), int(user.GID))
	})
}

// open lets users pass through to a run's directory, which only its user may read.
func (s *Store) open(dir string) error {
	const passable = 0o711
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, passable); err != nil || parent == s.dir {
			return err
		}
	}
}

// told returns a writer that reports the number of bytes written so far to progress.
func told(progress func(int64)) io.Writer {
	var n int64
	return writerFunc(func(b []byte) (int, error) {
		n += int64(len(b))
		progress(n)
		return len(b), nil
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// syncAll syncs a directory's file system, so that a power cut cannot damage the directory, which
// would then have to be unpacked again.
func syncAll(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return &fs.PathError{Op: "sync", Path: dir, Err: err}
	}
	return nil
}

// removeAll removes a tree, even if a program has removed its own permissions.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil || os.Geteuid() == 0 {
		return err // root does not need permission, and a link could redirect chmod
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // a directory
		}
		return nil
	})
	return os.RemoveAll(dir)
}
