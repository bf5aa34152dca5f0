package signatures

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Signers is an allowed_signers file's content.
type Signers struct{ lines []signer }

// signer is a line of the file.
type signer struct {
	principals    []string
	key           []byte
	namespaces    []string // empty means any
	after, before time.Time
}

// ParseSigners reads a file in the format of ssh-keygen(1), section ALLOWED SIGNERS. It refuses
// certificate authorities and patterns for principals, because rules refer to principals by name.
func ParseSigners(data []byte) (*Signers, error) {
	s := &Signers{}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		one, err := parseSigner(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		s.lines = append(s.lines, one)
	}
	return s, nil
}

func parseSigner(line string) (signer, error) {
	var one signer
	names, rest, ok := cutQuoted(line)
	if !ok {
		return one, errors.New("write PRINCIPALS [OPTIONS] KEYTYPE KEY")
	}
	one.principals = strings.Split(names, ",")
	for _, name := range one.principals {
		switch {
		case strings.ContainsAny(name, "*?!"):
			return one, fmt.Errorf("%q is a pattern; name each principal", name)
		case name == "" || name == unsigned:
			return one, fmt.Errorf("%q is not a principal", name)
		}
	}
	key, _, options, more, err := ssh.ParseAuthorizedKey([]byte(rest))
	if err != nil || len(bytes.TrimSpace(more)) > 0 {
		return one, errors.New("there is no readable key after the principals")
	}
	one.key = key.Marshal()
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "namespaces":
			one.namespaces = strings.Split(value, ",")
		case "valid-after":
			one.after, err = parseTime(value)
		case "valid-before":
			one.before, err = parseTime(value)
		default:
			return one, fmt.Errorf("the option %q is not supported", name)
		}
		if err != nil {
			return one, fmt.Errorf("%s: %w", name, err)
		}
	}
	return one, nil
}

// unsigned is the reserved name for unsigned requests in policies.
const unsigned = "unsigned"

// cutQuoted cuts off the first word, which may be quoted.
func cutQuoted(line string) (word, rest string, ok bool) {
	if quoted, isQuoted := strings.CutPrefix(line, `"`); isQuoted {
		return strings.Cut(quoted, `"`)
	}
	i := strings.IndexAny(line, " \t")
	if i < 0 {
		return "", "", false
	}
	return line[:i], line[i:], true
}

// parseTime parses YYYYMMDD[HHMM[SS]][Z]. Without Z, the time is local.
func parseTime(text string) (time.Time, error) {
	zone := time.Local
	if digits, utc := strings.CutSuffix(strings.ToUpper(text), "Z"); utc {
		text, zone = digits, time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(layout) == len(text) {
			return time.ParseInLocation(layout, text, zone)
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write it like 20261123 or 202611230800Z", text)
}

// of returns a key's principals at a time.
func (s *Signers) of(key ssh.PublicKey, now time.Time) ([]string, error) {
	var principals []string
	wire := key.Marshal()
	known := false
	for _, l := range s.lines {
		if !bytes.Equal(l.key, wire) {
			continue
		}
		known = true
		if !l.after.IsZero() && now.Before(l.after) || !l.before.IsZero() && !now.Before(l.before) || !l.isFor(Namespace) {
			continue
		}
		principals = append(principals, l.principals...)
	}
	switch {
	case len(principals) > 0:
		return principals, nil
	case known:
		return nil, fmt.Errorf("the key %s is not valid at present, or not for %s", ssh.FingerprintSHA256(key), Namespace)
	}
	return nil, fmt.Errorf("the key %s is not among the allowed signers", ssh.FingerprintSHA256(key))
}

func (l signer) isFor(namespace string) bool {
	return l.namespaces == nil || slices.Contains(l.namespaces, namespace)
}
