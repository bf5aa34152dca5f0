package account

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entry is a file of an archive that is made by hand.
type entry struct {
	tar.Header
	text string
}

// exported is an export, as its manifest and its files.
func exported(t *testing.T) (Manifest, []entry) {
	a, histories := sample(t, "run-aaaa", "1")
	var file bytes.Buffer
	require.NoError(t, Pack(&file, a, histories, nil))
	zip, err := gzip.NewReader(&file)
	require.NoError(t, err)
	archive := tar.NewReader(zip)
	var files []entry
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		text, err := io.ReadAll(archive)
		require.NoError(t, err)
		files = append(files, entry{*h, string(text)})
	}
	var m Manifest
	require.NoError(t, json.Unmarshal([]byte(files[0].text), &m))
	return m, files[1:]
}

// packed writes an archive.
func packed(t *testing.T, m Manifest, files []entry, rest ...byte) []byte {
	t.Helper()
	manifest, err := json.Marshal(m)
	require.NoError(t, err)
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	archive := tar.NewWriter(zip)
	for _, f := range append([]entry{{tar.Header{Typeflag: tar.TypeReg, Name: manifestFile}, string(manifest)}}, files...) {
		f.Size = int64(len(f.text))
		require.NoError(t, archive.WriteHeader(&f.Header))
		_, err := io.WriteString(archive, f.text)
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	_, err = zip.Write(rest)
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	return b.Bytes()
}

// What export does not write is refused by name, and nothing is written.
func TestHostileImports(t *testing.T) {
	good, files := exported(t)
	text := func(name string) entry { return entry{tar.Header{Typeflag: tar.TypeReg, Name: name}, "x"} }
	with := func(change func(m *Manifest), more ...entry) []byte {
		m := good
		m.Files = append([]Entry{}, m.Files...)
		for _, f := range more {
			m.Files = append(m.Files, Entry{f.Name, int64(len(f.text))})
		}
		if change != nil {
			change(&m)
		}
		return packed(t, m, append(append([]entry{}, files...), more...))
	}
	whole := with(nil)
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 0xff
	account := files[0]
	other := account
	other.text = strings.ReplaceAll(other.text, "run-aaaa", "run-bbbb")
	nameless, more := account, account
	_, tasks, _ := strings.Cut(account.text, `"tasks":[{"name":"worker-0","start"`)
	nameless.text = strings.ReplaceAll(account.text, `{"name":"worker-0","start"`, `{"start"`)
	more.text = strings.ReplaceAll(account.text, `{"name":"worker-0","start"`, `{"name":"a"},{"name":"worker-0","start"`)
	require.NotEmpty(t, tasks)
	resized := func(f entry) []byte {
		m := good
		m.Files = append([]Entry{}, m.Files...)
		m.Files[0].Size = int64(len(f.text))
		return packed(t, m, []entry{f, files[1]})
	}
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "not gzip"},
		{"no archive", []byte("name: iris\n"), "not gzip"},
		{"half", whole[:len(whole)/2], "truncated"},
		{"without its checksum", whole[:len(whole)-4], "truncated"},
		{"damaged", damaged, ""},
		{"another format", with(func(m *Manifest) { m.Format = "other" }), `its format is "other"`},
		{"a later version", with(func(m *Manifest) { m.Version, m.Clusterrun = 2, "9.0" }), "it is of version 2, written by clusterrun 9.0"},
		{"no run", with(func(m *Manifest) { m.RunID = "a\nb" }), "is no run"},
		{"above", with(nil, text("../../evil")), `"../../evil" is no name`},
		{"above, among logs", with(nil, text("logs/attempt_0/0/../../../../evil")), "is no name"},
		{"absolute", with(nil, text("/tmp/evil")), `"/tmp/evil" is no name`},
		{"hidden", with(nil, text("logs/attempt_0/0/.bashrc")), "is no name"},
		{"a link", with(nil, entry{tar.Header{Typeflag: tar.TypeSymlink, Name: "logs/attempt_0/0/stdout.log", Linkname: "/etc/passwd"}, ""}), "is not a regular file"},
		{"a hard link", with(nil, entry{tar.Header{Typeflag: tar.TypeLink, Name: "logs/attempt_0/0/stdout.log", Linkname: "/etc/passwd"}, ""}), "is not a regular file"},
		{"a device", with(nil, entry{tar.Header{Typeflag: tar.TypeChar, Name: "logs/attempt_0/0/stdout.log"}, ""}), "is not a regular file"},
		{"twice", with(nil, text("logs/attempt_0/0/stdout.log"), text("logs/attempt_0/0/stdout.log")), "is there twice"},
		{"not in the manifest", packed(t, good, append(append([]entry{}, files...), text("logs/attempt_0/0/stdout.log"))), "is not in its manifest"},
		{"missing", packed(t, good, files[:1]), "truncated"},
		{"in another order", packed(t, good, []entry{files[1], files[0]}), "is where"},
		{"a wrong size", with(func(m *Manifest) { m.Files[2].Size = 5 }, text("logs/attempt_0/0/stdout.log")), "has 1 bytes, and 5 in the manifest"},
		{"a negative size", with(func(m *Manifest) { m.Files[1].Size = -1 }), "negative size"},
		{"sizes that overflow", with(func(m *Manifest) { m.Files[0].Size, m.Files[1].Size = 1<<63-1, 1<<63-1 }), "a higher --limit takes it"},
		{"too large", with(nil, entry{tar.Header{Typeflag: tar.TypeReg, Name: "logs/attempt_0/0/stdout.log"}, strings.Repeat("0", 2<<20)}), "a higher --limit takes it"},
		{"a bomb behind it", packed(t, good, files, make([]byte, 4<<20)...), "bytes follow the last file"},
		{"another behind it", append(bytes.Clone(whole), whole...), "something follows the last file"},
		{"the account of another run", packed(t, good, []entry{other, files[1]}), "account is of another run"},
		{"a task without a name", resized(nameless), "a task without a name"},
		{"more tasks than there are", resized(more), "has 3 tasks, and its status 2"},
		{"no account", packed(t, Manifest{Format: Format, Version: 1, RunID: "a", ExecutionID: "b", Files: []Entry{{"account.json", 2}, {"history.json", 2}}},
			[]entry{{tar.Header{Typeflag: tar.TypeReg, Name: accountFile}, "{}"}, {tar.Header{Typeflag: tar.TypeReg, Name: historyFile}, "[]"}}), "account is of another run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent := t.TempDir()
			state := filepath.Join(parent, "state", "imported")
			_, err := Import(t.Context(), bytes.NewReader(c.file), state, 1<<20)
			require.ErrorIs(t, err, ErrRefused)
			assert.Contains(t, err.Error(), c.want)
			assert.NoDirExists(t, filepath.Dir(state), "nothing is written")
		})
	}
	_, err := Import(t.Context(), bytes.NewReader(whole), filepath.Join(t.TempDir(), "a"), 1<<20)
	require.NoError(t, err, "and the good one is taken")
	entries, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	for _, e := range entries {
		assert.NotEqual(t, "evil", e.Name())
	}
}
