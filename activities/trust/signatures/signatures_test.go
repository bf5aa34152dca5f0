package signatures

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha512"
	"encoding/json"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hiddeco/sshsig"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

var now = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

func newKey(t testing.TB) ssh.Signer {
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	key := must.Get(ssh.NewSignerFromKey(private))(t)
	return key
}

func signersOf(t testing.TB, lines ...string) *Signers {
	s := must.Get(ParseSigners([]byte(strings.Join(lines, "\n"))))(t)
	return s
}

func line(principals string, key ssh.Signer) string {
	return principals + " " + string(ssh.MarshalAuthorizedKey(key.PublicKey()))
}

func aSpec(command ...string) *spec.RunSpec {
	return &spec.RunSpec{Command: command, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(4)}}}
}

// arrived returns a spec as a host receives it: with defaults, and through JSON.
func arrived(t testing.TB, s *spec.RunSpec) *spec.RunSpec {
	b := must.Get(json.Marshal(s.WithDefaults()))(t)
	out := must.JSON[spec.RunSpec](t, b)
	return &out
}

func TestSignatureIsOfOneRunAndOneSpec(t *testing.T) {
	key := newKey(t)
	s := aSpec("python3", "train.py")
	signature := must.Get(OfRun("iris-1", s).Sign(key, now))(t)
	by := signersOf(t, "# people", line("alice@example.com,alice", key))
	who, _, err := OfRun("iris-1", arrived(t, s)).Verify(*signature, by, now)
	require.NoError(t, err)
	assert.Equal(t, []string{"alice@example.com", "alice"}, who)

	later := *signature
	later.Expires = now.Add(time.Hour).Format(time.RFC3339)
	for name, of := range map[string]struct {
		Statement
		spec.Signature
	}{
		"run ID": {OfRun("iris-2", s), *signature},
		"spec":   {OfRun("iris-1", aSpec("python3", "other.py")), *signature},
		"expiry": {OfRun("iris-1", s), later},
		"kind":   {Statement{"start-task", "iris-1", s.AsSigned()}, *signature},
	} {
		_, _, err := of.Verify(of.Signature, by, now)
		assert.ErrorContains(t, err, "another run ID or another", name)
	}
	_, _, err = OfRun("iris-1", s).Verify(*signature, signersOf(t, line("bob", newKey(t))), now)
	assert.ErrorContains(t, err, "is not among the allowed signers")
	_, _, err = OfRun("iris-1", s).Verify(spec.Signature{Expires: signature.Expires, SSH: "x"}, by, now)
	assert.ErrorContains(t, err, "not a verifiable SSH signature")
	assert.True(t, Expired(*signature, now))
	assert.False(t, Expired(*signature, now.Add(-time.Second)))
	assert.True(t, Expired(spec.Signature{Expires: "x"}, now))
}

// From an ECDSA signature (r, s), anybody can make another valid one, (r, n-s).
func TestTurnedSignatureIsOfTheSame(t *testing.T) {
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	key := must.Get(ssh.NewSignerFromKey(private))(t)
	by := signersOf(t, line("a", key))
	signature := must.Get(OfRun("r", aSpec("x")).Sign(key, now))(t)
	_, id, err := OfRun("r", aSpec("x")).Verify(*signature, by, now)
	require.NoError(t, err)

	parsed := must.Get(sshsig.Unarmor([]byte(signature.SSH)))(t)
	var rs struct{ R, S *big.Int }
	require.NoError(t, ssh.Unmarshal(parsed.Signature.Blob, &rs))
	rs.S.Sub(elliptic.P256().Params().N, rs.S)
	parsed.Signature.Blob = ssh.Marshal(rs)
	turned := *signature
	turned.SSH = string(sshsig.Armor(parsed))
	require.NotEqual(t, signature.SSH, turned.SSH)
	_, same, err := OfRun("r", aSpec("x")).Verify(turned, by, now)
	require.NoError(t, err)
	assert.Equal(t, id, same)

	other := must.Get(OfRun("r", aSpec("y")).Sign(key, now))(t)
	_, different, err := OfRun("r", aSpec("y")).Verify(*other, by, now)
	require.NoError(t, err)
	assert.NotEqual(t, id, different)
}

func TestElasticRunMayHaveFewerTasksThanWereSigned(t *testing.T) {
	key := newKey(t)
	s := aSpec("x")
	s.Hosts.Count, s.RestartScope = "2:4", spec.RestartScopeGroup
	signature, err := OfRun("r", s).Sign(key, now)
	require.NoError(t, err)
	signature.Size = 4
	by := signersOf(t, line("a", key))
	for tasks, valid := range map[int]bool{4: true, 3: true, 2: true, 5: false} {
		smaller := s.WithDefaults()
		smaller.Tasks[0].Count = new(tasks)
		smaller.Signature = signature
		_, _, err = OfRun("r", arrived(t, smaller)).Verify(*signature, by, now)
		assert.Equal(t, valid, err == nil, tasks)
	}
}

func TestSignersAreThoseOfTheTime(t *testing.T) {
	key := newKey(t)
	signature := must.Get(OfRun("r", aSpec("x")).Sign(key, now))(t)
	for options, valid := range map[string]bool{
		"": true, `valid-after="20261123Z" `: true, `valid-after="20261124Z" `: false, `valid-before="202611230800Z" `: false,
		`valid-before="202611230801Z" `: true, `namespaces="git" `: false, `namespaces="git,clusterrun-run" `: true,
	} {
		by := signersOf(t, strings.Replace(line("a", key), "ssh-ed25519", options+"ssh-ed25519", 1))
		_, _, err := OfRun("r", aSpec("x")).Verify(*signature, by, now)
		assert.Equal(t, valid, err == nil, options)
	}
}

func TestBadSigners(t *testing.T) {
	key := line("a", newKey(t))
	for text, want := range map[string]string{
		"alice": "write PRINCIPALS", "alice ssh-ed25519 xx": "no readable key", strings.Replace(key, "a ", "* ", 1): "is a pattern",
		strings.Replace(key, "a ", "unsigned ", 1): "is not a principal", strings.Replace(key, "a ", "a cert-authority ", 1): "not supported",
		strings.Replace(key, "a ", `a valid-after="soon" `, 1): "is not a time",
	} {
		_, err := ParseSigners([]byte("\n" + text))
		assert.ErrorContains(t, err, want, text)
		assert.ErrorContains(t, err, "line 2", text)
	}
}

// Certificates and SHA-1 are refused for every statement kind.
func TestRefusedAlgorithms(t *testing.T) {
	key := newKey(t)
	certificate := &ssh.Certificate{Key: key.PublicKey(), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	require.NoError(t, certificate.SignCert(rand.Reader, newKey(t)))
	certified := must.Get(ssh.NewCertSigner(certificate, key))(t)
	text := must.Get(sign(certified, Namespace, []byte("message")))(t)
	_, err := verify(text, Namespace, []byte("message"))
	require.ErrorContains(t, err, "with a certificate")

	private := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	old := must.Get(ssh.NewSignerFromKey(private))(t)
	text = must.Get(sign(old, Namespace, []byte("message")))(t)
	parsed := must.Get(sshsig.Unarmor([]byte(text)))(t)
	hash := sha512.Sum512([]byte("message"))
	signed := ssh.Marshal(struct{ Namespace, Reserved, Algorithm, Hash string }{Namespace, "", "sha512", string(hash[:])})
	parsed.Signature = must.Get(old.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, append([]byte("SSHSIG"), signed...), ssh.KeyAlgoRSA))(t)
	_, err = verify(string(sshsig.Armor(parsed)), Namespace, []byte("message"))
	require.ErrorContains(t, err, `invalid signature format "ssh-rsa"`)
}

// TestAgreesWithSSHKeygen compares both directions with OpenSSH, for each key type.
func TestAgreesWithSSHKeygen(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("there is no ssh-keygen here")
	}
	for _, typ := range []string{"ed25519", "ecdsa", "rsa"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "key")
		run := func(stdin, name string, args ...string) string {
			cmd := exec.Command(name, args...)
			cmd.Stdin = strings.NewReader(stdin)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", name, out)
			return string(out)
		}
		run("", "ssh-keygen", "-q", "-t", typ, "-N", "", "-f", file)
		private := must.Get(os.ReadFile(file))(t)
		key := must.Get(ssh.ParsePrivateKey(private))(t)

		ours := must.Get(sign(key, Namespace, []byte("message")))(t)
		allowed, sig := filepath.Join(dir, "allowed"), filepath.Join(dir, "sig")
		require.NoError(t, os.WriteFile(allowed, []byte(line("alice", key)), 0o600))
		require.NoError(t, os.WriteFile(sig, []byte(ours), 0o600))
		run("message", "ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "alice", "-n", Namespace, "-s", sig)

		message := filepath.Join(dir, "message")
		require.NoError(t, os.WriteFile(message, []byte("message"), 0o600))
		run("", "ssh-keygen", "-Y", "sign", "-f", file, "-n", Namespace, message)
		theirs := must.Get(os.ReadFile(message + ".sig"))(t)
		by := must.Get(verify(string(theirs), Namespace, []byte("message")))(t)
		assert.Equal(t, key.PublicKey().Marshal(), by.Marshal())
		_, err := verify(string(theirs), "git", []byte("message"))
		assert.ErrorContains(t, err, `its namespace is "clusterrun-run"`)
	}
}

func FuzzVerify(f *testing.F) {
	key := newKey(f)
	text := must.Get(sign(key, Namespace, []byte("message")))(f)
	f.Add(text)
	f.Add("-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n")
	f.Fuzz(func(t *testing.T, text string) {
		if by, err := verify(text, Namespace, []byte("message")); err == nil {
			assert.Equal(t, key.PublicKey().Marshal(), by.Marshal(), "a signature by nobody")
		}
	})
}

func FuzzParseSigners(f *testing.F) {
	f.Add(line("a,b", newKey(f)))
	f.Add(`"a b" namespaces="x" ssh-ed25519 AAAA`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSigners([]byte(text))
		if err != nil {
			return
		}
		for _, l := range s.lines {
			assert.NotEmpty(t, l.principals)
			assert.NotContains(t, l.principals, unsigned)
		}
	})
}
