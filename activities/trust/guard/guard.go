package guard

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/activities/trust/signatures"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Guard guards one host. A nil Guard allows everything and logs nothing.
type Guard struct {
	file, audit string
	usedDir     string
	now         func() time.Time

	// using is held while the uses of signatures are read and written.
	using sync.Mutex

	mu      sync.Mutex
	policy  *policy.Policy
	signers *signatures.Signers
	// read holds the versions of the files that were read.
	read []version
}

// version identifies a file's content, to detect changes.
type version struct {
	path string
	info os.FileInfo
}

// New returns the guard of a host with the given policy and audit log. Either may be empty; if both
// are, New returns nil.
func New(file, audit, stateDir string) *Guard {
	if file == "" && audit == "" {
		return nil
	}
	return &Guard{file: file, audit: audit, usedDir: filepath.Join(stateDir, "signatures"), now: time.Now}
}

// Check returns an error if the policy or the audit log cannot be used.
func (g *Guard) Check() error {
	if g == nil {
		return nil
	}
	if _, _, err := g.load(); err != nil {
		return err
	}
	return g.checkAudit()
}

// read reads a policy and its signers file.
func read(file string) (*policy.Policy, *signatures.Signers, []version, error) {
	b, info, err := readTrusted(file)
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, nil, nil, fmt.Errorf("policy %s: %w", path.Path, path.Err)
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("policy: %w", err)
	}
	p, err := policy.Decode(b)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	read := []version{{file, info}}
	s := &signatures.Signers{}
	if p.AllowedSigners != "" {
		p.AllowedSigners = below(filepath.Dir(file), p.AllowedSigners)
		b, info, err := readTrusted(p.AllowedSigners)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("%s: allowed_signers: %w", file, err)
		}
		if s, err = signatures.ParseSigners(b); err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", p.AllowedSigners, err)
		}
		read = append(read, version{p.AllowedSigners, info})
	}
	if p.Audit != "" {
		p.Audit = below(filepath.Dir(file), p.Audit)
	}
	return p, s, read, nil
}

func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// load returns the current policy and signers.
func (g *Guard) load() (*policy.Policy, *signatures.Signers, error) {
	if g.file == "" {
		return nil, nil, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.policy != nil && g.unchanged() {
		return g.policy, g.signers, nil
	}
	p, s, read, err := read(g.file)
	if err != nil {
		g.policy = nil
		return nil, nil, err
	}
	g.policy, g.signers, g.read = p, s, read
	return p, s, nil
}

func (g *Guard) unchanged() bool {
	for _, v := range g.read {
		info, err := os.Stat(v.path)
		if err != nil || !os.SameFile(info, v.info) || info.Size() != v.info.Size() ||
			!info.ModTime().Equal(v.info.ModTime()) || info.Mode() != v.info.Mode() {
			return false
		}
	}
	return true
}

// Decide returns the policy's decision about a request.
func (g *Guard) Decide(r policy.Request) policy.Decision {
	if g == nil {
		return (*policy.Policy)(nil).Decide(r)
	}
	p, _, err := g.load()
	if err != nil {
		return policy.Decision{Reason: "this host's policy cannot be used: " + err.Error()}
	}
	r.AsRoot = os.Geteuid() == 0
	return p.Decide(r)
}

// HasPolicy reports whether a request may be denied.
func (g *Guard) HasPolicy() bool { return g != nil && g.file != "" }

// Signers returns the principals of the key that signed a statement, and the ID of what was signed.
// Both are empty if there is no signature or no policy. If by is not empty, Signers records that it
// has used the signature.
func (g *Guard) Signers(st signatures.Statement, signature *spec.Signature, by Use) (principals []string, id string, err error) {
	if !g.HasPolicy() || signature == nil {
		return nil, "", nil
	}
	_, signers, err := g.load()
	if err != nil {
		return nil, "", fmt.Errorf("this host's policy cannot be used: %w", err)
	}
	principals, id, err = st.Verify(*signature, signers, g.now())
	if err != nil {
		return nil, "", fmt.Errorf("the signature was refused: %w", err)
	}
	g.using.Lock()
	defer g.using.Unlock()
	if err := g.use(id, signature.Expires, by); err != nil {
		return nil, "", fmt.Errorf("the signature was refused: %w", err)
	}
	return principals, id, nil
}

// auditFile returns the audit log's path, or an empty string.
func (g *Guard) auditFile() string {
	if p, _, err := g.load(); err == nil && p != nil {
		return cmp.Or(g.audit, p.Audit)
	}
	return g.audit
}
