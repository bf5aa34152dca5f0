package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func masksOf(t *testing.T, text string, ranks int) []Std {
	t.Helper()
	m, err := ParseStd(text)
	require.NoError(t, err, text)
	list := make([]Std, ranks)
	for i := range list {
		list[i] = m.Of(i)
	}
	return list
}

func TestParseStdValue_TE03(t *testing.T) {
	for text, want := range map[string]Std{"0": StdNone, "1": StdOut, "2": StdErr, "3": StdAll} {
		assert.Equal(t, []Std{want, want, want}, masksOf(t, text, 3))
	}
	assert.True(t, StdAll.Out() && StdAll.Err() && StdOut.Out() && StdErr.Err())
	assert.False(t, StdNone.Out() || StdNone.Err() || StdOut.Err() || StdErr.Out())
}

func TestParseStdMap_TE04(t *testing.T) {
	assert.Equal(t, []Std{StdOut, StdNone}, masksOf(t, "0:1", 2))
	assert.Equal(t, []Std{StdOut, StdOut}, masksOf(t, "0:1,1:1", 2))
}

func TestParseStdBadInput_TE05(t *testing.T) {
	for _, text := range []string{"0:1,", "11", "0:1,1", "1,0:1"} {
		_, err := ParseStd(text)
		// The words of SEED-72.
		assert.EqualError(t, err, `"`+text+`" must be 0 (neither stream), 1 (stdout), 2 (stderr), 3 (both), or a list of these by rank; write "3" for all ranks, or "0:3,1-7:1" by rank`)
	}
	for _, text := range []string{"", "4", "-1", " 1", "1 ", "1\n", "0:4", "0:1, 1:1", "-1:1", "0-:1", "-3:1", "a:1", "0:1\n", ":", "٣"} {
		_, err := ParseStd(text)
		assert.Error(t, err, "%q", text)
	}
}

func TestParseStdToMap_TE06(t *testing.T) {
	assert.Equal(t, []Std{StdOut, StdOut}, masksOf(t, "1", 2), "one value spreads to all ranks")
	assert.Equal(t, []Std{StdNone, StdOut}, masksOf(t, "1:1", 2), "ranks left out get none")
	assert.Equal(t, []Std{StdOut, StdErr}, masksOf(t, "0:1,1:2", 2), "a full map is taken as it is")
}

func TestParseStdRepeatedRank_SEED72(t *testing.T) {
	assert.Equal(t, []Std{StdErr, StdAll}, masksOf(t, "0:1,1:3,0:2", 2), "the last counts")
	assert.Equal(t, []Std{StdOut, StdNone, StdOut}, masksOf(t, "0-2:1,1:0", 3))
}

// The seed refuses "10:1" and so cannot name rank 10; we do not copy that.
func TestParseStdRanksBeyondNine(t *testing.T) {
	got := masksOf(t, "10:1,11-13:2", 15)
	assert.Equal(t, []Std{StdNone, StdOut, StdErr, StdErr, StdErr, StdNone}, got[9:])
	assert.Equal(t, []Std{StdAll}, masksOf(t, "000:3", 1))
	for _, text := range []string{"10000:1", "0-10000:1", "99999999999999999999:1"} {
		_, err := ParseStd(text)
		assert.ErrorContains(t, err, "ranks are 0 to 9999", text)
	}
	_, err := ParseStd("3-1:1")
	assert.ErrorContains(t, err, "descending order")
}

func TestZeroMaskIsNone(t *testing.T) {
	assert.Equal(t, StdNone, StdMasks{}.Of(0))
}
