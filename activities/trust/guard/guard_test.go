package guard

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/activities/trust/signatures"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

var begin = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

func newGuard(t *testing.T, rules string) (*Guard, string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700)) // regardless of the umask
	file := filepath.Join(dir, "policy.yaml")
	write(t, file, rules)
	g := New(file, filepath.Join(dir, "audit.log"), dir)
	g.now = func() time.Time { return begin }
	return g, file
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

const unsignedSh = "rules: [{signers: [unsigned], user: root, programs: [/bin/sh]}]"

func TestPolicyIsReadAnewWhenItHasChanged(t *testing.T) {
	g, file := newGuard(t, unsignedSh)
	require.NoError(t, g.Check())
	sh := policy.Request{Program: "/bin/sh"}
	assert.True(t, g.Decide(sh).Allowed)
	write(t, file, strings.Replace(unsignedSh, "/bin/sh", "/bin/ls", 1)) // same size
	require.NoError(t, os.Chtimes(file, begin, begin))
	assert.False(t, g.Decide(sh).Allowed)
	write(t, file, "rules: [{signers: [unsigned], program: [/bin/sh]}]")
	d := g.Decide(sh)
	assert.False(t, d.Allowed)
	assert.Contains(t, d.Reason, "this host's policy cannot be used")
	assert.Contains(t, d.Reason, "rules[0].program: not a field of rule")
	write(t, file, unsignedSh+"\n")
	assert.True(t, g.Decide(sh).Allowed)
	require.NoError(t, os.Remove(file))
	assert.False(t, g.Decide(sh).Allowed)
}

func TestPolicyThatOthersCanWriteIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(dir, file string) error{
		"its file":                func(_, file string) error { return os.Chmod(file, 0o622) },
		"its directory":           func(dir, _ string) error { return os.Chmod(dir, 0o777) },
		"a directory above":       func(dir, _ string) error { return os.Chmod(filepath.Dir(dir), 0o770) },
		"a directory for a group": func(dir, _ string) error { return os.Chmod(dir, 0o720) },
	} {
		top := t.TempDir()
		require.NoError(t, os.Chmod(top, 0o700))
		dir := filepath.Join(top, "above", "dir")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		file := filepath.Join(dir, "policy.yaml")
		write(t, file, unsignedSh)
		require.NoError(t, New(file, "", dir).Check(), name)
		of := t.TempDir()
		require.NoError(t, os.Chmod(of, 0o700))
		link := filepath.Join(of, "link")
		require.NoError(t, os.Symlink(file, link))
		require.NoError(t, New(link, "", dir).Check(), name)
		require.NoError(t, spoil(dir, file))
		assert.ErrorContains(t, New(file, "", dir).Check(), "is writable by others", name)
		assert.ErrorContains(t, New(link, "", dir).Check(), "is writable by others", name+", through a link")
	}
}

func TestPolicyOfSomebodyElseIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	g, file := newGuard(t, unsignedSh)
	require.NoError(t, os.Chown(file, 65534, 65534))
	assert.ErrorContains(t, g.Check(), "belongs to user 65534; it must belong to root or to the host worker's user")
	require.NoError(t, os.Chown(file, 0, 0))
	require.NoError(t, os.Chown(filepath.Dir(file), 65534, 65534))
	assert.ErrorContains(t, g.Check(), "belongs to user 65534")
}

func TestPolicyThatCannotBeReadIsRefused(t *testing.T) {
	dir := t.TempDir()
	for file, want := range map[string]string{
		filepath.Join(dir, "none"): "no such file", dir: "not a regular file",
	} {
		assert.ErrorContains(t, New(file, "", dir).Check(), want)
	}
	g, file := newGuard(t, "allowed_signers: signers\nrules: []")
	assert.ErrorContains(t, g.Check(), "allowed_signers: ")
	signers := filepath.Join(filepath.Dir(file), "signers")
	write(t, signers, "nonsense")
	assert.ErrorContains(t, g.Check(), "line 1: write PRINCIPALS")
	write(t, signers, "")
	require.NoError(t, g.Check())
	require.NoError(t, os.Chmod(signers, 0o666))
	assert.ErrorContains(t, g.Check(), "is writable by others")
}

// signedBy returns a guard with a signer, and a function that signs as that signer.
func signedBy(t *testing.T) (*Guard, func(id string, s *spec.RunSpec, expires time.Time) *spec.Signature) {
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	key := must.Get(ssh.NewSignerFromKey(private))(t)
	g, file := newGuard(t, "allowed_signers: signers\nrules: [{signers: [alice]}]")
	write(t, filepath.Join(filepath.Dir(file), "signers"), "alice "+string(ssh.MarshalAuthorizedKey(key.PublicKey())))
	return g, func(id string, s *spec.RunSpec, expires time.Time) *spec.Signature {
		signature := must.Get(signatures.OfRun(id, s).Sign(key, expires))(t)
		return signature
	}
}

func TestExpiryBoundsTheFirstUse(t *testing.T) {
	g, sign := signedBy(t)
	s := &spec.RunSpec{Command: []string{"x"}, Tasks: []spec.TaskGroup{{Type: "worker"}}}
	run := Use{Namespace: "default", Workflow: "r", Run: "first"}
	of := signatures.OfRun("r", s)
	late := sign("r", s, begin)
	_, _, err := g.Signers(of, late, run)
	assert.ErrorContains(t, err, "it expired at 2026-11-23T08:00:00Z")

	signature := sign("r", s, begin.Add(time.Minute))
	who, _, err := g.Signers(of, signature, run)
	require.NoError(t, err)
	assert.Equal(t, []string{"alice"}, who)
	now := begin.Add(time.Hour)
	g.now = func() time.Time { return now }
	_, _, err = g.Signers(of, signature, run)
	require.NoError(t, err, "the run has begun here")
	_, _, err = g.Signers(of, signature, Use{Namespace: "default", Workflow: "r", Run: "second"})
	assert.ErrorContains(t, err, "it has been used before")

	// The guard remembers only the uses of this host's runs.
	now = begin.Add(2 * time.Hour)
	require.NoError(t, g.Forget(func(u Use) bool { return u == run }))
	_, _, err = g.Signers(of, signature, run)
	require.NoError(t, err)
	require.NoError(t, g.Forget(func(Use) bool { return false }))
	_, _, err = g.Signers(of, signature, run)
	assert.ErrorContains(t, err, "it expired")
}

func TestSignatureOfAStartIsGoodForOneInAGeneration(t *testing.T) {
	g, sign := signedBy(t)
	s := &spec.RunSpec{Command: []string{"x"}, Tasks: []spec.TaskGroup{{Type: "worker"}}}
	signature := sign("r", s, begin.Add(time.Minute))
	of := signatures.OfRun("r", s)
	use := func(generation, launch int) error {
		_, _, err := g.Signers(of, signature, Use{Run: "e", Generation: generation, Launch: launch})
		return err
	}
	_, _, err := g.Signers(of, signature, Use{})
	require.NoError(t, err, "to ask is no use")
	require.NoError(t, use(0, 1))
	require.NoError(t, use(0, 1))
	assert.Error(t, use(0, 2))
	require.NoError(t, use(1, 0))
	assert.Error(t, use(0, 1), "that generation is over")
	_, _, err = g.Signers(of, signature, Use{})
	assert.ErrorContains(t, err, "it has been used before")
}

// A signature written differently is still the same signature.
func TestSignatureIsUsedUpHoweverItIsWritten(t *testing.T) {
	g, sign := signedBy(t)
	s := &spec.RunSpec{Command: []string{"x"}, Tasks: []spec.TaskGroup{{Type: "worker"}}}
	of, signature := signatures.OfRun("r", s), sign("r", s, begin.Add(time.Minute))
	_, _, err := g.Signers(of, signature, Use{Run: "first"})
	require.NoError(t, err)
	block, _ := pem.Decode([]byte(signature.SSH))
	require.NotNil(t, block)
	withHeader := *block
	withHeader.Headers = map[string]string{"Again": "yes"}
	body := base64.StdEncoding.EncodeToString(block.Bytes)
	for how, text := range map[string]string{
		"as it is":       signature.SSH,
		"with a prefix":  "once more\n" + signature.SSH,
		"with a space":   signature.SSH + " \n",
		"in long lines":  "-----BEGIN SSH SIGNATURE-----\n" + body + "\n-----END SSH SIGNATURE-----\n",
		"in short lines": "-----BEGIN SSH SIGNATURE-----\n" + body[:8] + "\n" + body[8:] + "\n-----END SSH SIGNATURE-----\n",
		"with a header":  string(pem.EncodeToMemory(&withHeader)),
	} {
		again := *signature
		again.SSH = text
		who, _, err := g.Signers(of, &again, Use{Run: "first"})
		require.NoError(t, err, "%s: it is the same signature", how)
		assert.Equal(t, []string{"alice"}, who, how)
		_, _, err = g.Signers(of, &again, Use{Run: "second"})
		assert.ErrorContains(t, err, "it has been used before", how)
	}
	later := sign("r", s, begin.Add(time.Hour))
	_, _, err = g.Signers(of, later, Use{Run: "second"})
	require.NoError(t, err, "another expiry is another statement")
}

func TestAuditLogBoundsItsLines(t *testing.T) {
	g, _ := newGuard(t, unsignedSh)
	long := strings.Repeat("x", 1<<20)
	require.NoError(t, g.Log(Entry{What: "refused", Command: []string{"a", long, "b", long}, Why: long}))
	b := must.Get(os.ReadFile(g.audit))(t)
	assert.Less(t, len(b), 3*maxText)
	e := must.JSON[Entry](t, b)
	assert.Equal(t, "a", e.Command[0])
	assert.True(t, strings.HasPrefix(e.Command[1], "xxx"))
	short := []string{"a", "b"}
	assert.Equal(t, short, shortened(short))
	words := shortened(slices.Repeat([]string{""}, 1<<20))
	assert.LessOrEqual(t, len(words), maxText+2)
}

func TestAuditLog(t *testing.T) {
	g, _ := newGuard(t, unsignedSh)
	require.NoError(t, g.Log(Entry{What: "start", Run: "r", Task: "worker-0"}))
	require.NoError(t, os.Rename(g.audit, g.audit+".1"), "it may be moved away")
	require.NoError(t, g.Log(Entry{What: "refused", Run: "r\n", Why: "\"x\"\n"}))
	b := must.Get(os.ReadFile(g.audit))(t)
	assert.Equal(t, 1, strings.Count(string(b), "\n"))
	e := must.JSON[Entry](t, b)
	assert.Equal(t, Entry{Time: begin, What: "refused", Run: "r\n", Why: "\"x\"\n"}, e)
	info := must.Get(os.Stat(g.audit))(t)
	assert.Equal(t, os.FileMode(0o600), info.Mode())

	require.NoError(t, os.Remove(g.audit))
	require.NoError(t, os.Symlink("/dev/null", g.audit))
	assert.ErrorContains(t, g.Log(Entry{What: "start"}), "cannot write the audit log")
	g.audit = filepath.Join(g.audit, "no", "such")
	assert.Error(t, g.Check())
}

func TestNoGuard(t *testing.T) {
	g := New("", "", t.TempDir())
	assert.Nil(t, g)
	assert.NoError(t, g.Check())
	assert.NoError(t, g.Log(Entry{}))
	assert.NoError(t, g.Forget(nil))
	assert.True(t, g.Decide(policy.Request{Program: "/bin/sh"}).Allowed)
	who, _, err := g.Signers(signatures.Statement{}, &spec.Signature{}, Use{})
	assert.NoError(t, err)
	assert.Empty(t, who)
}
