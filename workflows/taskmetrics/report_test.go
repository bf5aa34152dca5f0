package taskmetrics

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var began = time.Unix(1_800_000_000, 0).UTC()

// However often a program reports, all of its time stays covered.
func TestThinReports(t *testing.T) {
	var kept []Report
	const all = 100_000
	for i := range all {
		kept = append(kept, Report{At: began.Add(time.Duration(i) * time.Second), Step: float64(i)})
		if len(kept) == 2*Kept {
			kept = Thin(kept, Kept)
		}
	}
	kept = Thin(kept, Kept)
	require.LessOrEqual(t, len(kept), Kept)
	assert.Equal(t, float64(all-1), kept[len(kept)-1].Step)
	before := 0.0
	for _, r := range kept {
		assert.Less(t, r.Step-before, float64(4*all/Kept), "there is no gap before step %g", r.Step)
		before = r.Step
	}
	same := []Report{{At: began}, {At: began, Step: 1}, {At: began, Step: 2}}
	assert.Equal(t, same[2:], Thin(same, 2), "at the same time")
}

func TestReportLines(t *testing.T) {
	want := []Report{{began, 1, map[string]float64{"loss": 0.5}}, {began.Add(time.Second), 2, map[string]float64{"loss": 0.25, "eval.acc": -1}}}
	var b []byte
	for _, r := range want {
		b = Append(b, r)
	}
	b = Append(b, Report{began, 3, map[string]float64{"loss": math.NaN()}})
	assert.Equal(t, want, Parse(b))
	assert.Equal(t, want[:1], Parse(b[:len(b)-20]), "the writer was killed")
	assert.Empty(t, Parse([]byte(fmt.Sprintf(`{"at": %q, "metrics": {"<b>": 1}}`, began.Format(time.RFC3339)))))
	assert.Empty(t, Parse([]byte(`{"at": "1960-01-01T00:00:00Z", "metrics": {"loss": 1}}`)))
}

func TestNames(t *testing.T) {
	for _, name := range []string{"loss", "eval.loss-2", "_x"} {
		assert.True(t, IsName(name), name)
	}
	for _, name := range []string{"", "1st", "a b", "é", "a:min", strings.Repeat("x", 41)} {
		assert.False(t, IsName(name), name)
	}
}
