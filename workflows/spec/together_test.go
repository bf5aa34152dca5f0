package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// A given list of kinds replaces the default; an empty list means none.
func TestCleanErrors(t *testing.T) {
	s := StopTogether{CleanErrors: DefaultCleanErrors}
	for _, kind := range []string{"OutOfRangeError", "StopIteration", "EOFError", "EOF", "io.EOF", "tf.errors.OutOfRangeError"} {
		assert.True(t, s.Clean(kind), kind)
	}
	for _, kind := range []string{"", "ValueError", "MyEOF", "EOF.x", "outofrangeerror", "."} {
		assert.False(t, s.Clean(kind), kind)
	}
	own := StopTogether{CleanErrors: []string{"ValueError", "io.ErrClosedPipe"}}
	assert.True(t, own.Clean("ValueError"))
	assert.True(t, own.Clean("io.ErrClosedPipe"))
	assert.False(t, own.Clean("ErrClosedPipe"))
	assert.False(t, own.Clean("StopIteration"))
	assert.False(t, StopTogether{CleanErrors: []string{}}.Clean("StopIteration"))
}

// An empty list reaches the workflow unchanged. A missing list means the default.
func TestAnEmptyListOfCleanErrorsStaysEmpty(t *testing.T) {
	s := oneWorker(func(s *RunSpec) { s.StopTogether.CleanErrors = []string{} })
	data := must.Get(json.Marshal(s))(t)
	again := must.Get(Decode(data))(t)
	assert.Equal(t, []string{}, again.WithDefaults().StopTogether.CleanErrors)
	s = oneWorker(func(*RunSpec) {})
	assert.Equal(t, DefaultCleanErrors, s.WithDefaults().StopTogether.CleanErrors)
}

// Reports print people's messages on other people's terminals.
func TestTextsOfRequestsHaveNoEscapeSequences(t *testing.T) {
	const text, safe = "a\x1b[2Jb", `a\x1b[2Jb`
	b := TogetherRequest{Reason: text, Error: &TogetherError{Kind: text, Message: text, Traceback: text}}.Bounded()
	for _, got := range []string{b.Reason, b.Error.Kind, b.Error.Message, b.Error.Traceback, NoticeRequest{Reason: text}.Bounded().Reason} {
		assert.Equal(t, safe, got)
	}
}

func TestWordsOfAWishAreBounded(t *testing.T) {
	long := strings.Repeat("ü", 5000)
	r := TogetherRequest{Task: "worker-0", Key: "k", Reason: long, Error: &TogetherError{Kind: long, Message: long, Traceback: long + "end"}}
	b := r.Bounded()
	for _, c := range []struct {
		text string
		most int
	}{{b.Reason, maxTogetherWords}, {b.Error.Kind, maxTogetherKind}, {b.Error.Message, maxTogetherWords}, {b.Error.Traceback, maxTogetherTraceback}} {
		assert.LessOrEqual(t, len(c.text), c.most)
		assert.Greater(t, len(c.text), c.most-4)
		assert.True(t, utf8.ValidString(c.text))
	}
	assert.True(t, strings.HasSuffix(b.Error.Traceback, "end"), "its last bytes are kept")
	assert.True(t, strings.HasSuffix(b.Reason, "…"))
	assert.Equal(t, long, r.Error.Message, "the request itself stays as it is")
	short := TogetherRequest{Reason: "x", Error: &TogetherError{Message: "y"}}
	assert.Equal(t, short, short.Bounded())
	assert.Equal(t, "\ufffd", TogetherRequest{Reason: "\xff"}.Bounded().Reason)
}

func TestStoppingInWords(t *testing.T) {
	for want, s := range map[string]Stopping{
		"":                                    {Seq: 2},
		"an operator asked all tasks to stop": {Stop: true},
		"worker-1 asked all tasks to stop: the data is used up":                      {Stop: true, By: "worker-1", Reason: "the data is used up\nall of it"},
		"worker-1 asked all tasks to stop: ValueError: bad batch":                    {Stop: true, By: "worker-1", Error: &TogetherError{Kind: "ValueError", Message: "bad batch\n  in x"}},
		"worker-1 asked all tasks to stop: StopIteration (a clean stop)":             {Stop: true, By: "worker-1", Error: &TogetherError{Kind: "StopIteration"}, Clean: true},
		"an operator asked all tasks to stop: enough; it costs more than it returns": {Stop: true, Reason: "enough", Error: &TogetherError{Message: "it costs more than it returns"}},
	} {
		assert.Equal(t, want, s.String())
	}
}

func TestTogetherRequestsAreChecked(t *testing.T) {
	require.NoError(t, TogetherRequest{}.Validate())
	require.NoError(t, TogetherRequest{Task: "worker-3", Generation: 2, Key: "k", Reason: "r", Error: &TogetherError{Kind: "StopIteration"}}.Validate())
	for want, r := range map[string]TogetherRequest{
		"task: ":             {Task: "worker"},
		"generation: must":   {Generation: -1},
		"key: has 201 bytes": {Key: strings.Repeat("k", 201)},
		"error: is empty; set its kind or its message": {Error: &TogetherError{Traceback: "x"}},
	} {
		require.ErrorContains(t, r.Validate(), "invalid request: "+want)
	}
}

func TestTogetherGraceDefault_SEED59(t *testing.T) {
	assert.Equal(t, 2*time.Minute, oneWorker(func(*RunSpec) {}).WithDefaults().StopTogether.Grace.Std())
}

func TestBarrierID(t *testing.T) {
	run := RunRef{WorkflowID: "iris", RunID: "01a2051c-b91e-767e-97c7-4ee958adb375", Generation: 2}
	require.Equal(t, "iris/barrier/4ee958adb375/2/epoch/8", BarrierID(run, "epoch", 7))
	require.Equal(t, "iris/barrier/4ee958adb375/2/a%2Fb%20c/1", BarrierID(run, "a/b c", 0))
	require.True(t, strings.HasPrefix(BarrierID(run, "epoch", 7), BarrierIDPrefix("iris", "01a2051c-b91e-767e-97c7-4ee958adb375")))
	// Names of any length and script give short, distinct IDs.
	long := BarrierID(run, strings.Repeat("é", 100), 0)
	require.Less(t, len(long), 100)
	require.NotEqual(t, long, BarrierID(run, strings.Repeat("é", 99)+"e", 0))
}

func TestCheckBarrierName(t *testing.T) {
	require.NoError(t, CheckBarrierName("end of epoch/1 é"))
	require.ErrorContains(t, CheckBarrierName(""), "the name is empty")
	require.ErrorContains(t, CheckBarrierName(strings.Repeat("x", MaxBarrierName+1)), "201 bytes; use at most 200")
	require.ErrorContains(t, CheckBarrierName("a\x00b"), "cannot be printed")
	require.ErrorContains(t, CheckBarrierName("\xff"), "cannot be printed")
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
	require.Equal(t, "tasks already wait at this barrier with participants that differ from those of worker-1 (only in this request: worker-500; only in the earlier ones: ps-0, ps-1); specify the same participants in all tasks, or use another name",
		OtherParticipantsText("worker-1", many, append(slices.Delete(slices.Clone(many), 500, 501), "ps-0", "ps-1")))
	require.Contains(t, OtherParticipantsText("ps-0", []string{"ps-0"}, many), "worker-9 and 990 more")
}

// A value's JSON is never larger than counted: otherwise, a round's result could be too large for
// the server.
func FuzzBarrierValueSize(f *testing.F) {
	for _, value := range []string{"", "plain text", "\x00\x01\n\t", `"\<>&`, "é\u2028日本", "\xff\xfe", "\x7f"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		b := must.Get(json.Marshal(value))(t)
		require.LessOrEqual(t, len(b)-len(`""`), BarrierValueSize(value))
	})
}

func TestCauseOfARun(t *testing.T) {
	oom := &Failure{Exit: Exit{Cause: CauseOOM}}
	for _, c := range []struct {
		want   Cause
		result RunResult
	}{
		{CauseCompleted, RunResult{Verdict: VerdictSucceeded}},
		{CauseOOM, RunResult{Verdict: VerdictFailed, ErrorType: ErrUnexpectedExit, FirstFailure: oom}},
		{CauseTimeout, RunResult{Verdict: VerdictTimedOut, ErrorType: ErrSubprocessTimeout, FirstFailure: oom}},
		{CauseTimeout, RunResult{Verdict: VerdictFailed, ErrorType: ErrUnexpectedExit}},
		{CauseOperator, RunResult{Verdict: VerdictCancelled}},
		{CauseOperator, RunResult{Verdict: VerdictFailed, ErrorType: ErrSubprocess}},
		{"", RunResult{Verdict: VerdictFailed, ErrorType: ErrPlacement}},
	} {
		require.Equal(t, c.want, c.result.Cause(), c.result)
	}
}
