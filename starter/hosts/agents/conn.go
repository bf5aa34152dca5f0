package agents

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"time"

	"github.com/clusterrun/clusterrun/workers/embedded"
)

// The protocols of connections to an endpoint.
const (
	agentProtocol  = "clusterrun-agent"
	serverProtocol = "h2"
)

const (
	// handshakeTakes limits a connection's handshake.
	handshakeTakes = 10 * time.Second
	// maxLine limits a request and an answer, which both contain a spec.
	maxLine = 4 << 20
)

// keepAlive detects dead links.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 4}

// tlsConfig returns the configuration for both sides, which accept only their own key.
func tlsConfig(key []byte, protocols ...string) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(key, key)
	if err != nil {
		return nil, err
	}
	c := embedded.Mutual(pair, protocols...)
	c.ClientCAs, c.ClientAuth = c.RootCAs, tls.RequireAndVerifyClientCert
	return c, nil
}

// Request asks the head to let an agent join.
type Request struct {
	// Version is the program's version, which must be the same for all agents.
	Version string `json:"version"`
	// ID identifies the meeting.
	ID string `json:"id"`
	// Agent is random, and distinguishes agents with the same host and rank.
	Agent string `json:"agent"`
	// Host is the machine's name or, for an agent that rejoins, its host worker's.
	Host string `json:"host"`
	// ExecutionID identifies the run that the agent rejoins. It is empty for a new agent.
	ExecutionID string `json:"execution_id,omitempty"`
	// Rank is the host's place among the hosts, or -1 for any.
	Rank int `json:"rank"`
	// Encoded reports whether the agent has keys that encrypt payloads.
	Encoded bool `json:"encoded,omitempty"`
	// Spec is the spec from the agent's command line.
	Spec map[string]json.RawMessage `json:"spec,omitempty"`
}

// Answer is the head's answer to a Request.
type Answer struct {
	// Refusal is why the agent may not join. Later reports whether it may once another agent has
	// left, or with the next run. Taken reports whether its rank is taken by another agent; that
	// agent's connection may be dead, but not yet detectably.
	Refusal string `json:"refusal,omitempty"`
	Later   bool   `json:"later,omitempty"`
	Taken   bool   `json:"taken,omitempty"`
	// Host is the agent's host worker name.
	Host string `json:"host,omitempty"`
	Run
}

// Run describes the run to the agents.
type Run struct {
	Namespace   string          `json:"namespace,omitempty"`
	Queue       string          `json:"queue,omitempty"`
	RunID       string          `json:"run_id,omitempty"`
	ExecutionID string          `json:"execution_id,omitempty"`
	Spec        json.RawMessage `json:"spec,omitempty"`
}

func readLine(conn net.Conn, v any) error {
	return json.NewDecoder(io.LimitReader(conn, maxLine)).Decode(v)
}

func writeLine(conn net.Conn, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = conn.Write(append(b, '\n'))
	}
	return err
}

// pass copies in both directions until one direction ends.
func pass(a, b net.Conn) {
	defer a.Close()
	defer b.Close()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}
