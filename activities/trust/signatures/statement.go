package signatures

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Namespace separates signatures of runs from signatures of git commits and files.
const Namespace = "clusterrun-run"

// Statement is a signature's content.
type Statement struct {
	kind    string
	run     string
	content any
}

// OfRun returns the statement that a spec may be run under the given ID.
func OfRun(id string, s *spec.RunSpec) Statement { return Statement{"run", id, s.AsSigned()} }

// OfStart returns the statement that a task may be started in the run with the given ID.
func OfStart(id string, r spec.StartTaskRequest) Statement {
	return Statement{"start-task", id, r.AsSigned()}
}

// text returns the signed text, one part per line.
func (s Statement) text(expires string) ([]byte, error) {
	b, err := json.Marshal(s.content)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "clusterrun %s\nrun: %q\nsha256: %x\nexpires: %q\n", s.kind, s.run, sha256.Sum256(b), expires), nil
}

// Sign signs a statement. The signature is valid until expires.
func (s Statement) Sign(key ssh.Signer, expires time.Time) (*spec.Signature, error) {
	signature := &spec.Signature{Expires: expires.UTC().Truncate(time.Second).Format(time.RFC3339)}
	text, err := s.text(signature.Expires)
	if err != nil {
		return nil, err
	}
	if signature.SSH, err = sign(key, Namespace, text); err != nil {
		return nil, fmt.Errorf("sign with the key %s: %w", ssh.FingerprintSHA256(key.PublicKey()), err)
	}
	return signature, nil
}

// Verify returns the principals of the key that signed a statement, and an ID of what was signed. A
// signature can be encoded in many ways, so only the ID shows whether it was used before. Verify
// does not check whether the signature has expired.
func (s Statement) Verify(signature spec.Signature, by *Signers, now time.Time) (principals []string, id string, err error) {
	text, err := s.text(signature.Expires)
	if err != nil {
		return nil, "", err
	}
	key, err := verify(signature.SSH, Namespace, text)
	if errors.Is(err, errMismatch) {
		return nil, "", fmt.Errorf("it is for another run ID or another %s, or its expiry was changed", s.what())
	}
	if err != nil {
		return nil, "", err
	}
	principals, err = by.of(key, now)
	sum := sha256.Sum256(append(text, key.Marshal()...))
	return principals, hex.EncodeToString(sum[:]), err
}

func (s Statement) what() string {
	if s.kind == "run" {
		return "spec"
	}
	return "request"
}

// Expired reports whether a signature is too old for a run or task that has not been started yet.
func Expired(s spec.Signature, now time.Time) bool {
	expires, err := time.Parse(time.RFC3339, s.Expires)
	return err != nil || !now.Before(expires)
}
