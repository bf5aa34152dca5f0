package debugbundle

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestText(t *testing.T) {
	s := NewScrubber([]string{`pl@nted "value"/1`, "one-of-two\ntwo-of-two\n", "x"})
	key := "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEISECRETSECRET\nAAAA\n-----END EC PRIVATE KEY-----"
	for _, text := range []string{
		`said pl@nted "value"/1 here`, `{"a":"pl@nted \"value\"/1"}`, "http://h/?q=" + url.QueryEscape(`pl@nted "value"/1`),
		base64.StdEncoding.EncodeToString([]byte(`pl@nted "value"/1`)), hex.EncodeToString([]byte(`pl@nted "value"/1`)),
		"one-of-two", "two-of-two",
		key, strings.ReplaceAll(key, "\n", `\n`), key[40:], key[:60],
		"postgres://ann:hunter2222@db/x", "WANDB_API_KEY=hunter2222", `"api_key": "hunter2222"`, "apiKey: hunter2222", `export DB_PASSWORD='hunter2222 x'`,
		"--password hunter2222", "--db-password=hunter2222", "http://127.0.0.1:8233/?token=hunter2222&x=1", "Authorization: Bearer hunter2222",
		"authorization: Negotiate hunter2222", "bearer hunter2222", "ghp_hunter2222hunter", "eyJhbGci.eyJzdWIi.hunter2222", "sk-hunter2222", `{\"token\": \"hunter2222\"}`,
		"a=b PASSWORD=hunter2222", "config: PASSWORD=hunter2222", "-token hunter2222",
	} {
		got := s.Text(text)
		assert.Contains(t, got, leftOut, text)
		for _, secret := range []string{"pl@nted", "pl%40nted", base64.RawStdEncoding.EncodeToString([]byte("pl@nted")), "706c406e", "of-two", "MHcCAQ", "AAAA", "hunter2222"} {
			assert.NotContains(t, got, secret, text)
		}
	}
	for _, text := range []string{
		"", "worker-3 ended with exit code 3", "2026-11-23T11:00:00Z INFO host worker is ready {\"queue\": \"clusterrun\"}", "PATH=/usr/bin:/bin", "x is short",
		"the key of the embedded server: no such file", "python3 train.py --epochs 10", "monkey=banana",
	} {
		assert.Equal(t, text, s.Text(text))
	}
	assert.Equal(t, s.Text("TOKEN=hunter2222"), s.Text(s.Text("TOKEN=hunter2222")), "twice is as once")
}

func TestJSON(t *testing.T) {
	var doc any
	require.NoError(t, json.Unmarshal([]byte(`{
		"spec": {"env": {"PLAIN": "hunter2222", "REF": {"from_file": "/run/secret"}}, "dir": "/srv", "count": 3},
		"command": ["train.py", "--wandb-key", "hunter2222", "--password=hunter2222", "--lr", "0.1"],
		"input": {"payloads": [{"metadata": {"encoding": "anNvbg=="}, "data": "aHVudGVyMjIyMg=="}]},
		"start": {"set": {"A": "hunter2222", "B": null}, "inherited": {"C": "hunter2222"}},
		"last_lines": "hunter2222", "value": {"deep": "hunter2222"}, "apiToken": "hunter2222",
		"message": "said hunter2222", "text": "failed: API_KEY=hunter2222"}`), &doc))
	text := must.Get(NewScrubber(nil).JSON(doc))(t)
	assert.NotContains(t, string(text), "hunter2222")
	assert.NotContains(t, string(text), "aHVudGVy")
	for _, kept := range []string{`"PLAIN"`, `"/run/secret"`, `"/srv"`, `"count": 3`, `"train.py"`, `"--lr"`, `"0.1"`, "a payload of about 12 bytes", "failed: API_KEY="} {
		assert.Contains(t, string(text), kept)
	}
}
