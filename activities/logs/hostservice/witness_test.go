package hostservice

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/lease"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Another host of the run asks with the token of the witness, which reads no files, and a token
// for files does not ask.
func TestAnotherHostAsks(t *testing.T) {
	h := newHost(t)
	question := Question{Task: "worker-1", Generation: 2, Offer: 7, Token: []byte{1}, Beat: spec.Heartbeat{PID: 4711}}
	h.AnswerBy(func(_ context.Context, run runkey.Run, q Question) lease.Answer {
		assert.Equal(t, h.run, run)
		assert.Equal(t, question, q)
		return lease.Silent
	})
	asks := NewClient(*h.DescribeWitness(h.run), h.run.RunID)
	defer asks.Close()
	answer, err := asks.Ask(t.Context(), question)
	require.NoError(t, err)
	assert.Equal(t, lease.Silent, answer)
	_, err = asks.List(t.Context())
	require.Error(t, err, "the token of the witness reads files")
	answer, err = asks.Ask(t.Context(), Question{})
	require.NoError(t, err)
	assert.Equal(t, lease.Denied, answer, "an empty question")

	reads := NewClient(*h.Describe(h.run, h.dir, nil), h.run.RunID)
	defer reads.Close()
	_, err = reads.Ask(t.Context(), question)
	require.Error(t, err, "a token for files asks")
	elsewhere := NewClient(*h.DescribeWitness(runkey.Run{RunID: "another"}), h.run.RunID)
	defer elsewhere.Close()
	_, err = elsewhere.Ask(t.Context(), question)
	require.Error(t, err, "the token of another run asks")
}
