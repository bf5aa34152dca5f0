package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A value is refused if it is nested so deep that the run's result could not be read with it,
// and so is a result file with such a value. Other values are handed on.
func TestResultsOfAllShapes(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	deep := strings.Repeat("[", 9999) + strings.Repeat("]", 9999)
	require.NoError(t, os.WriteFile(filepath.Join(l.home, "deep"), []byte(deep), 0o600))
	largest := `"` + strings.Repeat("<", 256<<10-2) + `"`
	require.NoError(t, os.WriteFile(filepath.Join(l.home, "largest"), []byte(largest), 0o600))
	code, r, stderr := l.json("-n", "6", "--on-failure", "continue", "--", "bash", "-c", `
case $RANK in
0) "$CR" task result - < deep || { echo "code $?" >&2; "$CR" task result '{"a": 1, "a": 2}'; } ;;
1) "$CR" task result 1e400 ;;
2) cp deep "$CLUSTERRUN_RESULT_FILE" ;;
3) "$CR" task result 1; "$CR" task error oops; "$CR" task result 3 ;;
4) printf '%0500000d' 0 | tr 0 1 | "$CR" task result - ;;
5) PYTHONPATH=$("$CR" task python --dir) python3 -c 'import clusterrun; clusterrun.result("x" * 3_000_000)' ;;
esac`)
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "to a depth of 9999; the limit is 500")
	assert.Equal(t, 1, strings.Count(stderr, "code 125\n"), stderr)
	assert.Equal(t, `{"a":1,"a":2}`, compacted(t, r.Tasks[0].Value))
	assert.Equal(t, "1e400", compacted(t, r.Tasks[1].Value))
	assert.Equal(t, spec.CauseOrigin, r.Tasks[2].Exit.Cause)
	assert.Contains(t, r.Tasks[2].Exit.Message, "a depth of 9999; the limit is 500")
	assert.Equal(t, "3", compacted(t, r.Tasks[3].Value))
	for i, size := range map[int]int{4: 500_000, 5: 3_000_002} {
		assert.Equal(t, spec.CauseCompleted, r.Tasks[i].Exit.Cause)
		assert.Empty(t, r.Tasks[i].Value)
		info, err := os.Stat(r.Tasks[i].Exit.ValueFile)
		if assert.NoError(t, err) {
			assert.Equal(t, int64(size), info.Size())
			assert.Equal(t, os.FileMode(0o600), info.Mode())
		}
	}
	assert.Contains(t, stderr, "worker-5 returned what is in "+r.Tasks[5].Exit.ValueFile)
	require.NotNil(t, r.FirstFailure)
	assert.Equal(t, "worker-2", r.FirstFailure.Task)

	// On its way to the server and back the value becomes six times as long.
	code, r, stderr = l.json("-n", "1", "--", "bash", "-c", `"$CR" task result - < largest`)
	assert.Zero(t, code, stderr)
	assert.Empty(t, r.Tasks[0].Value)
	assert.Contains(t, r.LeftOut.Values, "worker-0")
	b, err := os.ReadFile(filepath.Join(r.Tasks[0].Exit.LogDir, "result.json"))
	require.NoError(t, err)
	assert.Equal(t, largest, string(b))
}

func compacted(t *testing.T, value json.RawMessage) string {
	t.Helper()
	b, err := json.Marshal(value)
	require.NoError(t, err)
	return string(b)
}

// A report of any length is kept up to the length that is read, by programs of both languages.
func TestLongReportsOfTasks(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, r, stderr := l.json("-n", "1", "--", "bash", "-c",
		`{ printf '\e[31mdisk full\e[0m'; head -c 20000000 /dev/zero | tr '\0' x; } | "$CR" task error --kind IOError -; exit 3`)
	assert.Equal(t, 3, code, stderr)
	assert.True(t, strings.HasPrefix(r.FirstFailure.Message, "IOError: disk fullxxx"), "%.100q", r.FirstFailure.Message)

	code, r, stderr = l.json("--env", modulePath(t, l), "-n", "1", "--", "python3", "-c", `
import clusterrun
@clusterrun.record
def train():
    raise ValueError("start" + "x" * 10000000)
train()`)
	assert.Equal(t, 1, code, stderr)
	assert.True(t, strings.HasPrefix(r.FirstFailure.Message, "ValueError: startxxx"), "%.100q", r.FirstFailure.Message)
	info, err := os.Stat(r.FirstFailure.ErrorFile)
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(1<<20))
}
