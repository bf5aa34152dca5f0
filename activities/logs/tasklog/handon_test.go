package tasklog

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	tracedError = `{"message": {"message": "KeyError: 'lr'", "extraInfo": {"py_callstack": "in <module> & co", "timestamp": "1700000000"}}}`
	plainError  = "{\"message\": \"boom\",   \"timestamp\": 10}\n"
)

// The child's file becomes the parent's (TE-69, TE-76) and replaces any file there (TE-77).
// The upstream test of TE-69 compares nothing; this test does.
func TestHandOn_TE69_TE76_TE77_SEED88(t *testing.T) {
	for name, c := range map[string]struct {
		content  string
		exitCode int
		want     string // "": equal to the content
	}{
		"simple form":              {plainError, 3, ""},
		"exit code 0":              {tracedError, 0, ""},
		"no JSON at all":           {"core dumped", 3, ""},
		"a message that is a list": {`{"message": [1]}`, 3, ""},
		"nested, with its exit code": {tracedError, 3,
			`{"message":{"errorCode":3,"extraInfo":{"py_callstack":"in <module> & co","timestamp":"1700000000"},"message":"KeyError: 'lr'"}}`},
		"nested, ended by a signal": {`{"message": {"message": "x", "errorCode": 1}, "more": 1.0}`, -9,
			`{"message":{"errorCode":-9,"message":"x"},"more":1.0}`},
	} {
		t.Run(name, func(t *testing.T) {
			child, parent := fileWith(t, c.content), filepath.Join(t.TempDir(), "error.json")
			want := c.want
			if want == "" {
				want = c.content
			}
			for _, again := range []bool{false, true} {
				replaced, err := HandOn(child, parent, c.exitCode)
				require.NoError(t, err)
				assert.Equal(t, again, replaced)
				got, err := os.ReadFile(parent)
				require.NoError(t, err)
				assert.Equal(t, want, string(got))
				require.NoError(t, os.WriteFile(parent, []byte("an old story, and a longer one than the new one is, by far and in every respect"), 0o600))
			}
			left, err := os.ReadDir(filepath.Dir(parent))
			require.NoError(t, err)
			assert.Len(t, left, 1, "nothing is left beside it")
		})
	}
}

// TE-70.
func TestHandOnWithoutAChildsFile(t *testing.T) {
	parent := fileWith(t, "old")
	replaced, err := HandOn(filepath.Join(t.TempDir(), "missing"), parent, 1)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.False(t, replaced)
	got, err := os.ReadFile(parent)
	require.NoError(t, err)
	assert.Equal(t, "old", string(got))
}

func TestHandOnWhereItCannotBe(t *testing.T) {
	child, dir := fileWith(t, plainError), t.TempDir()
	_, err := HandOn(child, dir, 1)
	assert.EqualError(t, err, "error file "+dir+" is not a file")
	_, err = HandOn(child, filepath.Join(dir, "missing", "error.json"), 1)
	assert.ErrorContains(t, err, "missing/error.json")
	_, err = HandOn(child, child, 1)
	require.NoError(t, err)
	got, err := os.ReadFile(child)
	require.NoError(t, err)
	assert.Equal(t, plainError, string(got), "the same file is left alone")
}
