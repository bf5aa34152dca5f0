package hostservice

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/lease"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Question asks another host of a run to extend a process's lease; see package lease. An empty
// Question asks only whether the host answers.
type Question struct {
	Task       string `json:"task,omitempty"`
	Generation int    `json:"generation,omitempty"`
	Offer      int64  `json:"offer,omitempty"`
	// Token and Beat are the heartbeat to pass on.
	Token []byte         `json:"token,omitempty"`
	Beat  spec.Heartbeat `json:"beat,omitzero"`
	// Within is the time limit for the answer.
	Within time.Duration `json:"within,omitempty"`
}

// maxQuestion and maxAnswer limit question and answer bodies.
const maxQuestion, maxAnswer = 256 << 10, 1 << 10

// Witness answers questions from a run's other hosts.
type Witness func(ctx context.Context, run runkey.Run, q Question) lease.Answer

// AnswerBy sets the witness. It must be called before [Server.Serve].
func (s *Server) AnswerBy(w Witness) { s.witness = w }

// DescribeWitness returns how the run's other hosts ask this host.
func (s *Server) DescribeWitness(run runkey.Run) *spec.HostService {
	return s.describe(grant{Run: run, Witness: true})
}

func ofWitness(g grant, r *http.Request) bool {
	return g.Witness && g.Run.RunID == r.PathValue("run")
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, g grant) {
	var q Question
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxQuestion)).Decode(&q); err != nil {
		http.Error(w, "cannot read the question: "+err.Error(), http.StatusBadRequest)
		return
	}
	answer := lease.Denied
	if s.witness != nil && q.Task != "" {
		answer = s.witness(r.Context(), g.Run, q)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// Ask asks the host, as another host of the run.
func (c *Client) Ask(ctx context.Context, q Question) (a lease.Answer, err error) {
	response, err := c.ask(ctx, http.MethodPost, "/lease", q)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&a); err != nil {
		return "", c.failed(err)
	}
	return a, nil
}
