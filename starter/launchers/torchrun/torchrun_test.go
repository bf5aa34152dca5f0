package torchrun

import (
	"errors"
	goflag "flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/text/shellword"
)

// TestScripts runs testdata, which contains torchrun command lines, preceded by variables, and
// their translations. `go test -run Scripts -rewrite` rewrites the answers. run is the command
// line of `clusterrun run`; ... stands for the flags that all of them share.
func TestScripts(t *testing.T) {
	tested := map[string]bool{}
	variables := map[string]bool{}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			for line := range strings.Lines(d.Input) {
				environ, args := shellLine(t, strings.TrimSpace(line))
				if g, err := parse(args, func(name string) string { return Machine{Environ: environ}.getenv(name) }); err == nil {
					for name, v := range g.values {
						tested[name] = tested[name] || strings.HasPrefix(v.from, "-")
						variables[name] = variables[name] || !strings.HasPrefix(v.from, "-")
					}
				}
				b.WriteString(translated(environ, args))
			}
			return b.String()
		})
	})
	for _, f := range flags {
		assert.True(t, tested[f.name], "a script has --%s", f.name)
		assert.True(t, f.typed || variables[f.name], "a script has %s", f.variable())
	}
}

// shellLine parses a line such as A=1 torchrun --tee 3 'a b'.
func shellLine(t *testing.T, line string) (environ, args []string) {
	t.Helper()
	var words []string
	for _, word := range regexp.MustCompile(`('[^']*'|[^' ])+`).FindAllString(line, -1) {
		words = append(words, strings.ReplaceAll(word, "'", ""))
	}
	at := slices.Index(words, "torchrun")
	require.GreaterOrEqual(t, at, 0, line)
	return words[:at], words[at+1:]
}

// translated returns a command line's translation, on a machine with 2 GPUs and 8 CPUs.
func translated(environ, args []string) string {
	l, err := Translate(args, Machine{
		Environ:   environ,
		Inherited: slices.DeleteFunc(slices.Clone(environ), regexp.MustCompile("^(SLURM_PROCID|CLUSTERRUN_|TORCHELASTIC_RUN_ID|RANK)").MatchString),
		LookPath: func(name string) (string, error) {
			if slices.Contains(environ, "PATH=/empty") {
				return "", exec.ErrNotFound
			}
			return "/usr/bin/" + name, nil
		},
		Processes: func(text string) (int, error) {
			switch text {
			case "gpu", "auto":
				return 2, nil
			case "cpu":
				return 8, nil
			}
			n, err := strconv.Atoi(text)
			if err != nil {
				return 0, errors.New("--nproc-per-node: no number")
			}
			return n, nil
		},
	})
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	if l.Help {
		return "help\n"
	}
	command := shellword.Join(append(append([]string{"run"}, l.Flags...), append([]string{"--"}, l.Command...)...))
	command = strings.Replace(command, "--set 'env_profiles=[torch]' --set logs.redirects=0 --tee 0 --log-prefix '[${role_name}${local_rank}]:'", "...", 1)
	command = strings.Replace(command, shellword.Of(runPath), "RUNPY", 1)
	if l.Signals != "" {
		command += "\nsignals: " + l.Signals
	}
	if m := l.Meeting; m != nil {
		command += fmt.Sprintf("\nmeets: %s:%d id %s rank %d, %s", m.Host, m.Port, m.ID, m.Rank, m.Timeout)
		if m.Head != nil {
			command += fmt.Sprintf(", head %t", *m.Head)
		}
		for _, more := range append([]string{m.TokenFile, m.Address}, m.Own...) {
			if more != "" {
				command += ", " + more
			}
		}
	}
	for _, note := range l.Notes {
		command += "\nsays: " + note
	}
	return command + "\n"
}

// All flags and variables of the installed torchrun are known.
func TestTheFlagsOfTorchrun(t *testing.T) {
	const list = `import torch.distributed.run as r
for a in r.get_args_parser()._actions:
    if a.option_strings and a.dest != "help":
        print(a.dest, *a.option_strings, "VALUE" if a.nargs is None else "")`
	out, err := exec.Command("/usr/bin/python3", "-c", list).Output() // where distributions put a packaged torch
	if err != nil {
		t.Skip("needs torch for /usr/bin/python3")
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		at := slices.IndexFunc(flags, func(f flag) bool { return f.name == dashed(words[0]) })
		require.GreaterOrEqual(t, at, 0, line)
		assert.Equal(t, strings.HasSuffix(line, "VALUE\n"), flags[at].value != "", line)
		for _, option := range words[1:] {
			if strings.HasPrefix(option, "-") {
				assert.True(t, Has(strings.TrimLeft(option, "-")), option)
			}
		}
	}
}

// Each flag is in the reference, and is either used or unneeded. Lines of the reference are at
// most 93 bytes long.
func TestReference(t *testing.T) {
	for _, f := range flags {
		assert.Contains(t, Reference(), "--"+f.name)
		assert.True(t, (f.here == "") != (f.unneeded == ""), f.name)
	}
	for line := range strings.Lines(Reference()) {
		assert.LessOrEqual(t, len(line), 93, line)
	}
}

func TestVariables(t *testing.T) {
	assert.Equal(t, []string{"PET_NNODES", "PET_RDZV_ID"},
		Variables([]string{"PET_NNODES=2", "PET_DOG=1", "PET_RDZV_ID=x", "PET_ROLE=", "PET_LOGS_SPECS=x"}))
}

// Arguments never cause a panic, and each refusal comes with a message.
func FuzzTranslate(f *testing.F) {
	f.Add("--nproc-per-node=2 --tee 3 train.py", "PET_NNODES=1")
	f.Add("-mr 0:1 -t3 -- x", "PET_STANDALONE=1")
	f.Add("--nnodes 2:4 --rdzv-endpoint [::1]:0 x", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=$$${rank}")
	f.Fuzz(func(t *testing.T, args, environ string) {
		out := translated(strings.Split(environ, "\n"), strings.Split(args, " "))
		assert.NotEmpty(t, strings.TrimPrefix(out, "error: \n"))
	})
}

// An argument with ${local_rank} is replaced like in torchrun:
// string.Template(arg).safe_substitute(local_rank=3). Other arguments keep $$, which torchrun
// replaces with $.
func TestWithLocalRank(t *testing.T) {
	for arg, want := range map[string]string{
		"--local_rank=${local_rank}":      "--local_rank=3",
		"$local_rank":                     "3",
		"$local_rank.log":                 "3.log",
		"a'b ${local_rank} \"$HOME\" `x`": "a'b 3 \"$HOME\" `x`",
		"$${local_rank} is ${local_rank}": "${local_rank} is 3",
		"${local_rank}${local_rank}":      "33",
		"${local_rank}\n\\":               "3\n\\",
	} {
		command := WithLocalRank([]string{"printf", "%s|", "", arg, "$HOME $$"})
		c := exec.Command(command[0], command[1:]...)
		c.Env = append(c.Environ(), "LOCAL_RANK=3")
		out, err := c.Output()
		require.NoError(t, err, arg)
		assert.Equal(t, "|"+want+"|$HOME $$|", string(out), arg)
	}
	for _, arg := range []string{"", "$local_ranks", "${rank}", "$$local_rank", "$${local_rank}", "local_rank"} {
		command := []string{"${local_rank}", arg}
		assert.Equal(t, command, WithLocalRank(command), "it is left alone")
	}
	assert.Equal(t, strings.Fields("train.py"), WithLocalRank([]string{"train.py"}))
}

var update = goflag.Bool("update", false, "write the table of the topic anew")

// The topic lists the current flags.
func TestTopic(t *testing.T) {
	const path, head = "../../help/topics/start/torchrun.md", "| flag | here |\n| --- | --- |\n"
	b := must.Get(os.ReadFile(path))(t)
	before, rest, found := strings.Cut(string(b), head)
	require.True(t, found)
	var table strings.Builder
	for _, f := range flags {
		name := "--" + f.name
		if f.short != "" {
			name = "-" + f.short + ", " + name
		}
		if f.value != "" {
			name += " " + f.value
		}
		text := f.here
		if text == "" {
			text = "not needed: " + f.unneeded
		}
		table.WriteString("| `" + strings.ReplaceAll(name, "|", "\\|") + "` | " + text + " |\n")
	}
	after := rest
	for strings.HasPrefix(after, "| ") {
		_, after, _ = strings.Cut(after, "\n")
	}
	want := before + head + table.String() + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(b), "run the test with -update")
}
