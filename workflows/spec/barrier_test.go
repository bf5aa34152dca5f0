package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBarrierID(t *testing.T) {
	run := RunRef{WorkflowID: "iris", RunID: "01a2051c-b91e-767e-97c7-4ee958adb375", Generation: 2}
	require.Equal(t, "iris/barrier/4ee958adb375/2/epoch/8", BarrierID(run, "epoch", 7))
	require.Equal(t, "iris/barrier/4ee958adb375/2/a%2Fb%20c/1", BarrierID(run, "a/b c", 0))
	require.True(t, strings.HasPrefix(BarrierID(run, "epoch", 7), BarrierIDPrefix("iris", "01a2051c-b91e-767e-97c7-4ee958adb375")))
	// Names of any length and script give short IDs, and different ones.
	long := BarrierID(run, strings.Repeat("é", 100), 0)
	require.Less(t, len(long), 100)
	require.NotEqual(t, long, BarrierID(run, strings.Repeat("é", 99)+"e", 0))
}

func TestCheckBarrierName(t *testing.T) {
	require.NoError(t, CheckBarrierName("end of epoch/1 é"))
	require.ErrorContains(t, CheckBarrierName(""), "the name is empty")
	require.ErrorContains(t, CheckBarrierName(strings.Repeat("x", MaxBarrierName+1)), "201 bytes; give at most 200")
	require.ErrorContains(t, CheckBarrierName("a\x00b"), "cannot be shown")
	require.ErrorContains(t, CheckBarrierName("\xff"), "cannot be shown")
}

func TestParticipants(t *testing.T) {
	require.Equal(t, []string{"a", "b"}, NormalParticipants([]string{"b", "a", "b"}))
	require.Equal(t, ParticipantsDigest([]string{"a", "b"}), ParticipantsDigest([]string{"a", "b"}))
	require.NotEqual(t, ParticipantsDigest([]string{"a", "b"}), ParticipantsDigest([]string{"ab"}))
}

func TestOtherParticipantsText(t *testing.T) {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprint("worker-", i))
	}
	require.Equal(t, "tasks already wait there for other participants than worker-1 does (only here: worker-500; only there: ps-0, ps-1); give all tasks the same participants, or use another name",
		OtherParticipantsText("worker-1", many, append(slices.Delete(slices.Clone(many), 500, 501), "ps-0", "ps-1")))
	require.Contains(t, OtherParticipantsText("ps-0", []string{"ps-0"}, many), "worker-9 and 990 more")
}
