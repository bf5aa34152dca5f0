package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/clusterrun/clusterrun/starter/help"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// block is a fenced code block on a page. Blocks in sh are run, and so are the commands after $
// in console blocks. Their output must match the text that follows: … matches anything, a line of
// … matches any lines, and numbers may differ, except Python line numbers. A block that cannot be
// run gives the reason:
//
//	```sh no-run="needs two hosts"
//
// If a block starts with a comment that names a file, the block is written there, for later
// blocks. Other Python is run with clusterrun's package, other YAML is part of a spec, and JSON
// is one value on each line.
type block struct {
	page, language, noRun string
	line                  int
	text                  string
}

var fence = regexp.MustCompile("^```([a-z]*)(?: no-run=\"([^\"]+)\")?$")

func blocksOf(t *testing.T, path string) (blocks []block) {
	t.Helper()
	page := must.Get(os.ReadFile(path))(t)
	var open *block
	for i, line := range strings.Split(string(page), "\n") {
		switch {
		case open != nil && line == "```":
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			m := fence.FindStringSubmatch(line)
			require.NotNil(t, m, "%s:%d: a block is a language, and why it is not run: %s", path, i+1, line)
			open = &block{page: filepath.Base(path), language: m[1], noRun: m[2], line: i + 1}
		}
	}
	require.Nil(t, open, "%s: the last block has no end", path)
	return blocks
}

// topicFile returns a topic's file.
func topicFile(name string) string {
	topic, _ := help.Find(name)
	return filepath.Join(harness.Root(), "starter/help", topic.Path)
}

var fileName = regexp.MustCompile(`^(?:#|//) ([a-z_]+\.[a-z]+)\n`)

// step is one step on a page. It consists of shell commands and their expected output.
type step struct {
	where, script string
	want          *regexp.Regexp // nil for any output; but then the script must succeed
	shown         string
}

// steps returns a block's steps.
func (b block) steps(t *testing.T) (steps []step) {
	t.Helper()
	where := fmt.Sprintf("%s:%d", b.page, b.line)
	switch {
	case b.noRun != "":
	case b.language == "sh":
		return []step{{where: where, script: b.text}}
	case b.language == "console":
		var want string
		for line := range strings.Lines(b.text) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				steps = append(steps, step{where: where, script: command})
				want = ""
			} else if require.NotEmpty(t, steps, "%s begins with a command", where); strings.HasSuffix(steps[len(steps)-1].script, "\\\n") {
				steps[len(steps)-1].script += line
				continue
			} else {
				want += line
			}
			last := &steps[len(steps)-1]
			last.want, last.shown = pattern(want), want
		}
		return steps
	case fileName.MatchString(b.text):
		name := fileName.FindStringSubmatch(b.text)[1]
		return []step{{where: where, script: "cat > " + name + " <<'end of the file'\n" + b.text + "end of the file\n"}}
	case b.language == "python":
		return []step{{where: where, script: "cat > page.py <<'end of the file'\n" + b.text + "end of the file\nPYTHONPATH=$(clusterrun task python --dir) python3 page.py\n"}}
	case b.language == "yaml":
		var whole map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(b.text), &whole), where)
		for field, value := range map[string]any{"command": []string{"true"}, "tasks": []any{map[string]any{"type": "worker", "count": 8}}} {
			if _, given := whole[field]; !given {
				whole[field] = value
			}
		}
		text, err := json.Marshal(whole)
		require.NoError(t, err, where)
		_, err = spec.Decode(text)
		assert.NoError(t, err, where)
	case b.language == "json":
		values := json.NewDecoder(strings.NewReader(b.text))
		for {
			var value any
			if err := values.Decode(&value); errors.Is(err, io.EOF) {
				break
			} else if !assert.NoError(t, err, "%s: %s", where, b.text) {
				break
			}
		}
	case b.language != "text" && b.language != "go":
		assert.Failf(t, "a block that is not tested", "%s: %q is not a language that is known here; is it text?", where, b.language)
	}
	return nil
}

var (
	number = regexp.MustCompile(`(\.py:)?[0-9]+`)
	dots   = regexp.MustCompile(`(?m)^…\n`)
)

// pattern returns a pattern that matches output like the output shown on a page.
func pattern(shown string) *regexp.Regexp {
	s := regexp.QuoteMeta(shown)
	s = dots.ReplaceAllString(s, `(?:.*\n)*?`)
	s = strings.ReplaceAll(s, "…", `.*`)
	s = strings.NewReplacer("x2k9", "RANDOM", "host-a", `\S+`).Replace(s) // run IDs end like this
	s = number.ReplaceAllStringFunc(s, func(n string) string {
		if strings.HasPrefix(n, ".py:") {
			return n
		}
		return `[0-9]+`
	})
	s = strings.ReplaceAll(s, "RANDOM", `[a-z0-9]+`)
	return regexp.MustCompile(`^` + s + `$`)
}

// workplace is a user's home for trying pages.
type workplace struct {
	home string
	env  []string
}

// newWorkplace returns a home with private ports for `clusterrun dev`, and ssh hosts that are all
// this machine.
func newWorkplace(t *testing.T) *workplace {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("Python is not installed")
	}
	l := newLocal(t) // stops the server
	w := &workplace{home: l.home}
	fixtures := must.Get(filepath.Abs("testdata/topics"))(t)
	// Debian's Python has PyTorch, if that is installed.
	path := []string{filepath.Join(fixtures, "bin"), filepath.Dir(harness.Clusterrun(t)), "/usr/bin", os.Getenv("PATH"), filepath.Join(harness.Root(), ".tools")}
	w.env = harness.Env(w.home, "PATH="+strings.Join(path, ":"), "PROGRAM="+harness.Clusterrun(t),
		"CLUSTERRUN_DEVSERVER="+harness.Devserver(t), "PYTHONDONTWRITEBYTECODE=1")
	t.Cleanup(func() {
		p := harness.Start(t, w.home, w.env, harness.Clusterrun(t), "dev", "stop", "--force")
		assert.Zero(t, p.ExitCode(), p.Stderr())
	})
	return w
}

const mark = "\x1e"

// try runs a page's blocks, in a directory with the programs it mentions.
func (w *workplace) try(t *testing.T, page string) {
	t.Helper()
	var steps []step
	for _, b := range blocksOf(t, page) {
		steps = append(steps, b.steps(t)...)
	}
	if len(steps) == 0 {
		return
	}
	for _, program := range []string{"jq", "openssl", "curl", "temporal"} {
		called := regexp.MustCompile(`(?m)(^|[ |(])` + program + ` `)
		if slices.ContainsFunc(steps, func(s step) bool { return called.MatchString(s.script) }) {
			if _, err := exec.LookPath(program); err != nil && program != "temporal" {
				t.Skipf("there is no %s here", program)
			} else if program == "temporal" {
				harness.TemporalCLI(t)
			}
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/topics")))
	const example = "starter/examples/ddp" // as in a clone
	require.NoError(t, os.CopyFS(filepath.Join(dir, example), os.DirFS(filepath.Join(harness.Root(), example))))
	var script strings.Builder
	script.WriteString("shopt -s expand_aliases; exec 2>&1\n")
	for _, s := range steps {
		before := "set -e"
		if s.want != nil {
			before = "set +e; (exit $code)" // one command may ask for the exit code of another
		}
		fmt.Fprintf(&script, "code=$?; printf '%s'; %s\n%s", mark, before, s.script)
	}
	path := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(path, []byte(script.String()), 0o600))
	p := harness.Start(t, dir, w.env, "bash", path)
	code := p.ExitCode()
	outputs := strings.Split(p.Stdout(), mark)[1:]
	for i, out := range outputs {
		out = slowServer.ReplaceAllString(out, "")
		if s := steps[i]; s.want != nil {
			assert.Regexp(t, s.want, out, "%s: %s shows\n%s", s.where, s.script, s.shown)
		}
	}
	last := steps[len(outputs)-1]
	assert.True(t, len(outputs) == len(steps) && (code == 0 || last.want != nil), "%s fails with exit code %d:\n%s\n%s", last.where, code, last.script, outputs[len(outputs)-1])
}

// slowServer matches a launcher's messages about a server that a busy machine delays. No block
// stops its server.
var slowServer = regexp.MustCompile(`(?m)^clusterrun: (the embedded server does not answer; .*|the problem is resolved; the run continues)\n`)

// Every README block is run unchanged, in a separate home.
func TestREADME(t *testing.T) {
	t.Parallel()
	if err := exec.Command("/usr/bin/python3", "-c", "import torch").Run(); err != nil {
		t.Skip("PyTorch is not installed (Debian: python3-torch)")
	}
	newWorkplace(t).try(t, filepath.Join(harness.Root(), "README.md"))
}

// Every block of every topic is run as it is.
func TestTopics(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	// The pages are tried in parallel, so one host needs enough slots for all their runs.
	w.env = append(w.env, "SLOTS=64")
	dev := harness.Start(t, w.home, w.env, "bash", "-c", "clusterrun dev --detach")
	require.Zero(t, dev.ExitCode(), dev.Stderr())
	for _, name := range help.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.try(t, topicFile(name))
		})
	}
}
