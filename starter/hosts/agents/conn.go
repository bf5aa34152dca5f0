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
	// handshakeTakes bounds the handshake of the two sides of a connection.
	handshakeTakes = 10 * time.Second
	// maxLine bounds a request and an answer, which both contain a spec.
	maxLine = 4 << 20
)

// keepAlive detects dead links.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 4}

// tlsConfig returns the configuration of both sides, which accept no key but their own.
func tlsConfig(key []byte, protocols ...string) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(key, key)
	if err != nil {
		return nil, err
	}
	c := embedded.Mutual(pair, protocols...)
	c.ClientCAs, c.ClientAuth = c.RootCAs, tls.RequireAndVerifyClientCert
	return c, nil
}

// Request asks the head to let an agent take part.
type Request struct {
	// Version is the version of the program. It is the same for all agents.
	Version string `json:"version"`
	// ID identifies the meeting.
	ID string `json:"id"`
	// Agent is random, and distinguishes an agent from others with the same host and rank.
	Agent string `json:"agent"`
	// Host is the name of the machine, or of the host worker of an agent that rejoins.
	Host string `json:"host"`
	// ExecutionID identifies the run that the agent rejoins. It is empty if the agent is new.
	ExecutionID string `json:"execution_id,omitempty"`
	// Rank is the place of the host among the others, or -1 for any.
	Rank int `json:"rank"`
	// Encoded reports whether the agent has keys that encrypt payloads.
	Encoded bool `json:"encoded,omitempty"`
	// Spec is the spec that results from the agent's command line.
	Spec map[string]json.RawMessage `json:"spec,omitempty"`
}

// Answer is the head's answer to a Request.
type Answer struct {
	// Refusal says why the agent does not take part. Later reports whether it may once others
	// have left, or with the next run. Taken reports whether another agent has its rank; the
	// connection of that agent may be dead without a sign of it yet.
	Refusal string `json:"refusal,omitempty"`
	Later   bool   `json:"later,omitempty"`
	Taken   bool   `json:"taken,omitempty"`
	// Host is the name of the agent's host worker.
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

// pass copies in both directions, until one of them ends.
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
