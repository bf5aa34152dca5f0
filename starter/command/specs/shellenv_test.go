package specs

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestShellEnvironment(t *testing.T) {
	t.Setenv("GREETING", "hello=world")
	t.Setenv("LATIN", "caf\xe9")

	s := must.Get(specFrom(t, "", "-x", "GREETING", "-xLEVEL=", "-x", "A=1", "--env", "A=2", "--", "true"))(t)
	assert.Equal(t, spec.EnvOf(map[string]string{"GREETING": "hello=world", "LEVEL": "", "A": "2"}), s.Env)

	s = must.Get(specFrom(t, "", "--", "true"))(t)
	assert.Nil(t, s.Env)

	s = must.Get(specFrom(t, "{command: [x], tasks: [{type: worker}], env: {GREETING: mine, A: '1'}}", "-x", "A=2", "-"))(t)
	assert.Equal(t, spec.EnvOf(map[string]string{"GREETING": "mine", "A": "2"}), s.Env)

	_, err := specFrom(t, "", "-x", "LATIN", "--", "true")
	assert.ErrorContains(t, err, "not valid UTF-8")
	_, err = specFrom(t, "", "-x", "NOT_SET_HERE", "--", "true")
	assert.ErrorContains(t, err, "-x NOT_SET_HERE: this shell has no such variable")

	for _, name := range []string{"BIG", "BIGGER", "LARGE"} {
		t.Setenv(name, strings.Repeat("x", 100<<10+len(name)))
	}
	_, err = specFrom(t, "", "-x", "BIG", "-x", "BIGGER", "-x", "LARGE", "--", "true")
	assert.ErrorContains(t, err, "at most 256 KiB can be sent; the largest are BIGGER, LARGE, BIG: put large data into files")
}

func TestSecretsByReference(t *testing.T) {
	t.Setenv("TOKEN", "s3cret")
	s := must.Get(specFrom(t, "", "-x", "TOKEN", "--secret", "TOKEN=env:HF_TOKEN", "--secret", "KEY=file:/run/secrets/a=b:c", "--", "true"))(t)
	assert.Equal(t, spec.Env{"TOKEN": {From: spec.Source{FromEnv: "HF_TOKEN"}}, "KEY": {From: spec.Source{FromFile: "/run/secrets/a=b:c"}}}, s.Env)
	for _, text := range []string{"s3cret", "TOKEN", "TOKEN=", "TOKEN=s3cret", "TOKEN=env:", "TOKEN=vault:s3cret", "=env:X"} {
		_, err := specFrom(t, "", "--secret", text, "--", "true")
		require.ErrorContains(t, err, "write NAME=env:VARIABLE or NAME=file:PATH")
		assert.NotContains(t, strings.ReplaceAll(err.Error(), `--secret "s3cret"`, ""), "s3cret", "what may be the secret is not repeated")
	}
	_, err := specFrom(t, "", "--secret", "TOKEN=file:token", "--", "true")
	require.ErrorContains(t, err, `env.TOKEN.from_file: "token" is a relative path`)
}

func TestSecretsAreWarnedOf(t *testing.T) {
	for _, name := range []string{"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "wandb_api_key", "OPENAI_APIKEY", "GOOGLE_APPLICATION_CREDENTIALS",
		"MYSQL_PWD", "GH_PAT", "OPENAI_KEY", "DB_PW", "SLACK_WEBHOOK_URL", "SENTRY_DSN", "HTTP_AUTH", "JWT", "PGPASS"} {
		assert.True(t, spec.LooksSecret(name, "x"), name)
	}
	for _, name := range []string{"TOKENIZERS_PARALLELISM", "PATH", "KEYBOARD", "SSH_AUTH_SOCK", "MAX_TOKENS", "PWD", "OLDPWD"} {
		assert.False(t, spec.LooksSecret(name, "x"), name)
	}
	for _, value := range []string{"https://ghp_x@github.com", "postgres://me:word@db/x", "ghp_0123", "github_pat_1", "sk-0123456789", "Bearer xoxb-1", "AKIA0123456789AB"} {
		assert.True(t, spec.LooksSecret("X", value), value)
	}
	for _, value := range []string{"https://github.com/a", "task-0123456789", "/home/me", "me@example.org"} {
		assert.False(t, spec.LooksSecret("X", value), value)
	}
	s, err := specFrom(t, "{command: ['true'], tasks: [{type: worker, count: 1, env: {DB_PASSWORD: x, PASSWORD: y}, overrides: {'0': {env: {SECRET: z}}}}]}",
		"-x", "HF_TOKEN=1", "--env", "PASSWORD=2", "-x", "A=3", "--secret", "API_KEY=env:K", "-")
	require.NoError(t, err)
	var said bytes.Buffer
	a := &cli.App{Err: &said}
	saySecrets(a, s)
	assert.Contains(t, said.String(), "DB_PASSWORD, HF_TOKEN, PASSWORD, SECRET: probably secret, judging by its name")
	said.Reset()
	a.Global.Server.CodecKeys = "keys"
	saySecrets(a, s)
	assert.Empty(t, said.String(), "it is encoded")
}
