package agents

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/retry"
)

// JoinConfig configures an agent that joins a run.
type JoinConfig struct {
	// Endpoint is the head's address.
	Endpoint string
	// Key is the agents' key; see [Key].
	Key     []byte
	Request Request
	// Patience limits how long the agent tries to restore a broken connection, and how long it
	// keeps asking for a rank that another agent holds.
	Patience time.Duration
}

// Membership is an agent's membership in a run.
type Membership struct {
	Answer
	// Address is this machine's address on its connection to the endpoint.
	Address string

	config JoinConfig
	tls    *tls.Config
	conn   net.Conn
}

// RefusedError reports that an agent may not join.
type RefusedError struct{ Endpoint, Reason string }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("this agent was not accepted into the run at %s: %s", e.Endpoint, e.Reason)
}

// Join joins the run at the endpoint. It retries until ctx is done, and calls waiting after
// each failed attempt.
func Join(ctx context.Context, c JoinConfig, waiting func(error)) (*Membership, error) {
	config, err := tlsConfig(c.Key, agentProtocol)
	if err != nil {
		return nil, err
	}
	m := &Membership{config: c, tls: config}
	m.config.Request.Agent = rand.Text()
	again := retry.Backoff{First: 100 * time.Millisecond, Most: time.Second}
	var giveUp time.Time // set once the rank is taken
	for {
		err := m.ask(ctx, m.config.Request)
		if m.Taken && giveUp.IsZero() {
			giveUp = time.Now().Add(c.Patience)
		}
		var final *RefusedError
		switch {
		case err == nil:
			return m, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, &final) && !m.Later && (!m.Taken || !time.Now().Before(giveUp)):
			return nil, err
		}
		waiting(err)
		_ = again.Sleep(ctx)
	}
}

// ask connects to the head and sends the request.
func (m *Membership) ask(ctx context.Context, r Request) error {
	m.Answer = Answer{}
	bounded, done := context.WithTimeout(ctx, handshakeTakes)
	defer done()
	raw, err := (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext(bounded, "tcp", m.config.Endpoint)
	if err != nil {
		return err
	}
	conn := tls.Client(raw, m.tls)
	if err := conn.HandshakeContext(bounded); err != nil {
		_ = raw.Close()
		return m.explain(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	err = writeLine(conn, r)
	if err == nil {
		err = readLine(conn, &m.Answer) // once the run has started
	}
	if err == nil && m.Refusal != "" {
		err = &RefusedError{m.config.Endpoint, m.Refusal}
	}
	if err != nil || !stop() {
		_ = raw.Close()
		return m.explain(errors.Join(err, ctx.Err()))
	}
	m.conn = conn
	m.Address, _, _ = net.SplitHostPort(conn.LocalAddr().String())
	return nil
}

// explain returns a clearer error if the peer is not a head of this run.
func (m *Membership) explain(err error) error {
	var unknown *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown), errors.As(err, &authority):
		return &RefusedError{m.config.Endpoint, "it has another token; use the same token for all agents (" + TokenVariable + ", or token_file of --rdzv-conf)"}
	case errors.As(err, &noTLS):
		return &RefusedError{m.config.Endpoint, "another program, not an agent, listens at that address; use another port with --rdzv-endpoint"}
	}
	return err
}

// Lost waits until the head is gone, and returns the error that revealed it. It restores
// broken connections. When ctx is done, it leaves the run and returns nil.
func (m *Membership) Lost(ctx context.Context) error {
	again := m.config.Request
	again.ExecutionID, again.Host, again.Spec = m.ExecutionID, m.Host, nil
	for {
		conn := m.conn
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		_, _ = conn.Read(make([]byte, 1)) // the head sends nothing more
		if !stop() {
			return nil
		}
		if err := m.rejoin(ctx, again); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (m *Membership) rejoin(ctx context.Context, r Request) error {
	_ = m.conn.Close()
	giveUp := time.Now().Add(m.config.Patience)
	wait := retry.Backoff{First: 100 * time.Millisecond, Most: time.Second}
	for {
		err := m.ask(ctx, r)
		var refused *RefusedError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, &refused), time.Now().After(giveUp):
			return err // a living head listens
		}
		_ = wait.Sleep(ctx)
	}
}
