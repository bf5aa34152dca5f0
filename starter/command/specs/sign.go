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

// Signing are the flags of commands that can sign their requests.
type Signing struct {
	sign    bool
	key     string
	expires time.Duration
}

// defaultExpiry is long enough for a run that waits for a place overnight.
const defaultExpiry = 24 * time.Hour

func (g *Signing) Register(flags *pflag.FlagSet, when string) {
	flags.BoolVar(&g.sign, "sign", false, when+"sign it with the key in ssh-agent, for hosts with a policy")
	flags.StringVar(&g.key, "sign-key", "", when+"sign it with the SSH key in this `FILE`, or if it is a .pub file with that key in ssh-agent")
	flags.DurationVar(&g.expires, "sign-expires", defaultExpiry, when+"let hosts accept the signature for this `TIME`; what they have started continues")
}

func (g *Signing) Wanted() bool { return g.sign || g.key != "" }

func (g *Signing) check() error {
	if g.expires < time.Second {
		return cli.Usagef("--sign-expires %s: give 1s or more", g.expires)
	}
	return nil
}

// SignRun signs a run if the flags ask for it. The spec must not change after that.
func (g *Signing) SignRun(s *spec.RunSpec, o *starter.Options) error {
	if !g.Wanted() {
		return nil
	}
	o.ID = cmp.Or(o.ID, starter.NewID(s.Name))
	return g.with(func(key ssh.Signer) (err error) {
		if s.Signature, err = signatures.OfRun(o.ID, s).Sign(key, time.Now().Add(g.expires)); err == nil && s.IsElastic() {
			s.Signature.Size = len(s.TaskList())
		}
		return err
	})
}

// SignStart signs a request to start a task.
func (g *Signing) SignStart(id string, q *spec.StartTaskRequest) error {
	return g.with(func(key ssh.Signer) (err error) {
		q.Signature, err = signatures.OfStart(id, *q).Sign(key, time.Now().Add(g.expires))
		return err
	})
}

// with calls f with the signing key.
func (g *Signing) with(f func(ssh.Signer) error) error {
	if err := g.check(); err != nil {
		return err
	}
	var public ssh.PublicKey
	if g.key != "" {
		b, err := os.ReadFile(g.key)
		if err != nil {
			return cli.Usagef("--sign-key: %v", err)
		}
		if public, _, _, _, err = ssh.ParseAuthorizedKey(b); err != nil {
			key, err := ssh.ParsePrivateKey(b)
			switch {
			case starter.IsError[*ssh.PassphraseMissingError](err):
				return cli.Usagef("--sign-key %s has a passphrase; add it to ssh-agent with ssh-add, and use --sign", g.key)
			case err != nil:
				return cli.Usagef("--sign-key %s: %v", g.key, err)
			}
			return f(key)
		}
	}
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return cli.Usagef("there is no ssh-agent (SSH_AUTH_SOCK is not set); start one, or give --sign-key FILE")
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return cli.Usagef("ssh-agent: %v; start one, or give --sign-key FILE", err)
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

// chosen returns the key of an agent to sign with: the given one, or the only one.
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
		return nil, cli.Usagef("ssh-agent has no key; add one with ssh-add, or give --sign-key FILE")
	}
	return nil, cli.Usagef("ssh-agent has %d keys (%s); name one with --sign-key FILE.pub", len(keys), strings.Join(names, ", "))
}
