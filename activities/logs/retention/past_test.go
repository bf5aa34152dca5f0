package retention

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
)

// place is a state directory with logs.
type place struct {
	t          *testing.T
	home, logs string
}

func newPlace(t *testing.T) place {
	p := place{t, t.TempDir(), ""}
	p.logs = filepath.Join(p.home, "logs")
	require.NoError(t, os.MkdirAll(p.worker(), 0o700))
	return p
}

func (p place) worker() string { return filepath.Join(p.home, "worker") }

func (p place) write(path string) string {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(p.t, os.WriteFile(path, []byte("text\n"), 0o600))
	return path
}

// run makes the logs of a run that ended ago before now, or that has not ended if ago is 0.
func (p place) run(id, execution string, ago time.Duration) (runkey.Run, string) {
	p.t.Helper()
	key := runkey.Run{Namespace: "default", WorkflowID: id, RunID: "x-" + execution}
	dir := tasklog.RunDir(p.logs, id, key.RunID)
	p.write(filepath.Join(tasklog.ProcessDir(dir, 0, 0), tasklog.StdoutFile))
	require.NoError(p.t, Begin(p.logs, key, p.worker()))
	if ago > 0 {
		require.NoError(p.t, End(p.logs, id, key.RunID, now.Add(-ago)))
		p.edit(dir, func(n *Note) { n.Began = n.Ended.Add(-time.Minute) })
	}
	return key, dir
}

func holdsNone(string, runkey.Run) bool { return false }

func (p place) apply(holds func(string, runkey.Run) bool) []string {
	p.t.Helper()
	removed := must.Get(Policy{Home: p.home, For: DefaultFor}.Apply(p.logs, now, holds))(p.t)
	return removed
}

const long = 2 * DefaultFor

func TestApply(t *testing.T) {
	p := newPlace(t)
	key, past := p.run("past/run", "1", long)
	_, released := supervisor.Journals(p.worker(), key)
	p.write(released)
	ships := shipped.Open(p.worker()).Dir(key)
	p.write(filepath.Join(ships, "train.py"))
	p.write(ships + ".json")
	_, again := p.run("past/run", "2", time.Hour) // a later run with that ID
	_, open := p.run("open", "1", 0)
	heldKey, held := p.run("held", "1", long)

	assert.Equal(t, []string{"past/run"}, p.apply(func(state string, run runkey.Run) bool { return state == p.worker() && run == heldKey }))
	for _, gone := range []string{past, past + noteEnding, released, ships, ships + ".json"} {
		assert.NoFileExists(t, gone)
		assert.NoDirExists(t, gone)
	}
	for _, there := range []string{again, open, held} {
		assert.DirExists(t, there)
		assert.FileExists(t, there+noteEnding)
	}
	assert.Equal(t, []string{"held"}, p.apply(holdsNone))
	assert.NoDirExists(t, filepath.Dir(held))
}

// Logs without a note, another state directory's logs, and other files stay.
func TestOthersStay(t *testing.T) {
	p, other := newPlace(t), newPlace(t)
	other.logs = p.logs
	_, theirs := other.run("theirs", "1", long)
	_, mine := p.run("mine", "1", long)
	unknown := p.write(filepath.Join(p.logs, "unknown/1/attempt_0/0/stdout.log"))
	files := []string{
		p.write(filepath.Join(p.logs, "data/set/file")), p.write(filepath.Join(p.logs, "notes.json")),
		p.write(filepath.Join(p.logs, "data/set.json")),
		p.write(filepath.Join(mine, "checkpoint")), p.write(filepath.Join(filepath.Dir(mine), "file")), unknown,
	}
	assert.Equal(t, []string{"mine"}, p.apply(holdsNone))
	assert.DirExists(t, theirs)
	for _, file := range files {
		assert.FileExists(t, file)
	}
	assert.NoDirExists(t, filepath.Join(mine, "attempt_0"))
	assert.Empty(t, p.apply(holdsNone))
}

// edit changes a note to what another host or another clock would have written.
func (p place) edit(note string, do func(*Note)) {
	p.t.Helper()
	dir := must.Get(os.OpenRoot(filepath.Dir(note)))(p.t)
	defer dir.Close()
	n := must.Get(readNote(dir, filepath.Base(note)))(p.t)
	do(&n)
	require.NoError(p.t, writeNote(dir, filepath.Base(note), n))
}

// Another host has a state directory at the same path, and its process that writes a note has our
// number.
func TestAnotherHost(t *testing.T) {
	p := newPlace(t)
	_, lives := p.run("lives", "1", 0)
	_, past := p.run("past", "1", long)
	theirs := func(n *Note) { n.Host = "another" }
	p.edit(lives, theirs)
	p.edit(past, theirs)
	writing := p.write(filepath.Join(filepath.Dir(lives), "."+filepath.Base(lives)+noteEnding+"-"+strconv.Itoa(os.Getpid())))
	require.NoError(t, os.RemoveAll(p.worker()))
	at := time.Now().Add(long)
	removed := must.Get(Policy{Home: p.home, For: DefaultFor}.Apply(p.logs, at, holdsNone))(t)
	assert.Empty(t, removed)
	assert.DirExists(t, lives)
	assert.DirExists(t, past)

	l := must.Get(OpenLogs(p.logs))(t)
	defer l.Close()
	entries := must.Get(l.EntriesOf("lives"))(t)
	require.Len(t, entries, 1)
	assert.Equal(t, Unsettled, Past{Logs: l, Home: p.home, Holds: holdsNone}.Facts(entries[0], false).Alive())

	p.run("lives", "1", 0)
	assert.FileExists(t, writing)
	p.edit(lives, func(n *Note) { assert.Equal(t, Host(), n.Host, "we have begun there") })
}

// Removal does not follow a link at the path of a run, an execution, an attempt or a note, nor a
// forged note.
func TestLinksAreNotFollowed(t *testing.T) {
	p := newPlace(t)
	outside := p.write(filepath.Join(t.TempDir(), "attempt_0/0/stdout.log"))
	dir := filepath.Dir(filepath.Dir(filepath.Dir(outside)))
	_, victim := p.run("victim", "1", 0)

	_, run := p.run("run", "1", long)
	require.NoError(t, os.Rename(filepath.Dir(run), filepath.Dir(run)+"-was"))
	require.NoError(t, os.Symlink("run-was", filepath.Dir(run)))
	_, execution := p.run("execution", "1", long)
	require.NoError(t, os.RemoveAll(execution))
	require.NoError(t, os.Symlink(dir, execution))
	_, within := p.run("within", "1", long)
	require.NoError(t, os.RemoveAll(within))
	require.NoError(t, os.Symlink("../victim/1", within))
	_, attempt := p.run("attempt", "1", long)
	require.NoError(t, os.Symlink(filepath.Join(dir, "attempt_0"), filepath.Join(attempt, "attempt_1")))
	require.NoError(t, os.Symlink(dir, filepath.Join(attempt, "attempt_0", "1")))
	_, note := p.run("note", "1", long)
	require.NoError(t, os.Rename(note+noteEnding, note+".was"))
	require.NoError(t, os.Symlink("1.was", note+noteEnding))
	_, pipe := p.run("pipe", "1", long)
	require.NoError(t, os.Remove(pipe+noteEnding))
	require.NoError(t, syscall.Mkfifo(pipe+noteEnding, 0o600))
	_, forged := p.run("forged", "1", long)
	forgery := must.Get(os.ReadFile(forged + noteEnding))(t)
	require.NoError(t, os.WriteFile(victim+noteEnding, forgery, 0o600)) // another run's note

	removed, _ := Policy{Home: p.home, For: DefaultFor}.Apply(p.logs, now, holdsNone)
	assert.ElementsMatch(t, []string{"attempt", "forged"}, removed)
	assert.FileExists(t, outside)
	assert.FileExists(t, filepath.Join(victim, "attempt_0/0/stdout.log"))
	assert.DirExists(t, filepath.Dir(run)+"-was")
	assert.DirExists(t, note)
	assert.DirExists(t, pipe)
}

func TestNotesOfOthersDoNotCount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	p := newPlace(t)
	_, dir := p.run("run", "1", long)
	require.NoError(t, os.Chown(dir+noteEnding, 12345, 12345))
	assert.Empty(t, p.apply(holdsNone))
	assert.DirExists(t, dir)
}

// A killed removal has left the note, so that the next one removes the rest.
func TestARemovalThatWasKilled(t *testing.T) {
	p := newPlace(t)
	_, dir := p.run("run", "1", long)
	require.NoError(t, os.RemoveAll(dir))
	assert.Equal(t, []string{"run"}, p.apply(holdsNone))
	assert.NoDirExists(t, filepath.Dir(dir))
}

func TestTwoAtOnce(t *testing.T) {
	p := newPlace(t)
	_, dir := p.run("run", "1", long)
	l := must.Get(OpenLogs(p.logs))(t)
	require.NoError(t, l.Lock())
	assert.Empty(t, p.apply(holdsNone), "somebody else does it")
	assert.DirExists(t, dir)
	second := must.Get(OpenLogs(p.logs))(t)
	defer second.Close()
	require.ErrorIs(t, second.Lock(), ErrBusy)
	l.Close()
	assert.Equal(t, []string{"run"}, p.apply(holdsNone))
}

// The run begins again between the check and the removal.
func TestARunThatBeginsAgain(t *testing.T) {
	p := newPlace(t)
	key, dir := p.run("run", "1", long)
	looks := 0
	_, err := Policy{Home: p.home, For: DefaultFor}.Apply(p.logs, now, func(string, runkey.Run) bool {
		looks++
		return looks > 1
	})
	var alive *AliveError
	require.ErrorAs(t, err, &alive)
	assert.DirExists(t, dir)
	require.NoError(t, Begin(p.logs, key, p.worker()))
	assert.Empty(t, p.apply(holdsNone), "it has not ended again")
}

func TestWrongClocks(t *testing.T) {
	p := newPlace(t)
	_, early := p.run("early", "1", long)
	p.edit(early, func(n *Note) { n.Began = n.Ended.Add(24 * time.Hour) })
	_, late := p.run("late", "1", long)
	p.edit(late, func(n *Note) { n.Began = now.Add(time.Minute) })
	_, skewed := p.run("skewed", "1", long)
	p.edit(skewed, func(n *Note) { n.Began = n.Ended.Add(time.Second) })
	assert.Equal(t, []string{"skewed"}, p.apply(holdsNone))
	assert.DirExists(t, early)
	assert.DirExists(t, late)
}

// If a run's state directory has gone with it, the run counts as ended when it last wrote.
func TestAStateDirectoryThatIsGone(t *testing.T) {
	p := newPlace(t)
	_, dir := p.run("run", "1", 0)
	require.NoError(t, os.RemoveAll(p.worker()))
	assert.Empty(t, p.apply(holdsNone), "it has just written")
	at := time.Now().Add(long)
	removed := must.Get(Policy{Home: p.home, For: DefaultFor}.Apply(p.logs, at, holdsNone))(t)
	assert.Equal(t, []string{"run"}, removed)
	assert.NoDirExists(t, dir)
}

func TestNothingThere(t *testing.T) {
	p := newPlace(t)
	assert.Empty(t, p.apply(holdsNone))
}
