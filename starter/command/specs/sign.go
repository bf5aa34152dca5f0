package specs

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/clusterrun/clusterrun/activities/trust/signatures"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Signing is the flag of commands that can sign their requests.
type Signing struct {
	key string // a file, [inAgent], or "" if the request is not signed
}

// inAgent stands for the only key of ssh-agent.
const inAgent = "ssh-agent"

// expiry is long enough for a run that waits for capacity overnight.
const expiry = 24 * time.Hour

func (g *Signing) Register(flags *pflag.FlagSet, when string) {
	flags.StringVar(&g.key, "sign", "", when+"sign it with the key in ssh-agent, or in `FILE`")
	flags.Lookup("sign").NoOptDefVal = inAgent
}

func (g *Signing) Wanted() bool { return g.key != "" }

// SignRun signs a run if the flags request it. Afterwards, the spec must not change.
func (g *Signing) SignRun(s *spec.RunSpec, o *starter.Options) error {
	if !g.Wanted() {
		return nil
	}
	o.ID = cmp.Or(o.ID, starter.NewID(s.Name))
	return g.with(func(key ssh.Signer) (err error) {
		if s.Signature, err = signatures.OfRun(o.ID, s).Sign(key, time.Now().Add(expiry)); err == nil && s.IsElastic() {
			s.Signature.Size = len(s.TaskList())
		}
		return err
	})
}

// SignStart signs a request to start a task.
func (g *Signing) SignStart(id string, q *spec.StartTaskRequest) error {
	return g.with(func(key ssh.Signer) (err error) {
		q.Signature, err = signatures.OfStart(id, *q).Sign(key, time.Now().Add(expiry))
		return err
	})
}

// with calls f with the signing key.
func (g *Signing) with(f func(ssh.Signer) error) error {
	var public ssh.PublicKey
	if g.key != inAgent {
		b, err := os.ReadFile(g.key)
		if err != nil {
			return cli.Usagef("--sign: %v", err)
		}
		if public, _, _, _, err = ssh.ParseAuthorizedKey(b); err != nil {
			key, err := ssh.ParsePrivateKey(b)
			switch {
			case starter.IsError[*ssh.PassphraseMissingError](err):
				return cli.Usagef("--sign=%s has a passphrase; add it to ssh-agent with ssh-add, and use --sign alone", g.key)
			case err != nil:
				return cli.Usagef("--sign=%s: %v", g.key, err)
			}
			return f(key)
		}
	}
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return cli.Usagef("there is no ssh-agent (SSH_AUTH_SOCK is not set); start one, or use --sign=FILE")
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return cli.Usagef("ssh-agent: %v; start one, or use --sign=FILE", err)
	}
	defer conn.Close()
	all, err := agent.NewClient(conn).Signers()
	if err != nil {
		return fmt.Errorf("ssh-agent: %w", err)
	}
	key, err := chosen(all, public)
	if err != nil {
		return err
	}
	return f(key)
}

// chosen returns the agent's key to sign with: the given one, or the only one.
func chosen(all []ssh.Signer, public ssh.PublicKey) (ssh.Signer, error) {
	var keys []ssh.Signer
	var names []string
	for _, key := range all {
		if _, isCertificate := key.PublicKey().(*ssh.Certificate); isCertificate {
			continue
		}
		if public == nil || bytes.Equal(key.PublicKey().Marshal(), public.Marshal()) {
			keys = append(keys, key)
			names = append(names, ssh.FingerprintSHA256(key.PublicKey()))
		}
	}
	switch {
	case len(keys) == 1:
		return keys[0], nil
	case public != nil:
		return nil, cli.Usagef("ssh-agent does not have the key %s; add it with ssh-add", ssh.FingerprintSHA256(public))
	case len(keys) == 0:
		return nil, cli.Usagef("ssh-agent has no key; add one with ssh-add, or use --sign=FILE")
	}
	return nil, cli.Usagef("ssh-agent has %d keys (%s); name one with --sign=FILE.pub", len(keys), strings.Join(names, ", "))
}
