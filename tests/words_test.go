package tests

import (
	"bufio"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateWords = flag.Bool("lower", false, "lower the ceilings of testdata/words.txt to what is there now")

// addedBudget limits the stumbling phrases that a change may add, per 1,000 words. Go's library
// has 8, and Temporal's SDK 6.
const addedBudget = 12

// A stumble is a kind of phrase that is grammatical, but that a native speaker would not write, or
// would not write so often.
type stumble struct {
	name, instead string
	phrase        *regexp.Regexp
}

// stumbles are looked for in comments, messages and pages.
var stumbles = []stumble{
	{"genitive chain", "use a compound or a possessive: 'the run's end', not 'the end of a run'",
		regexp.MustCompile(`\b(?:the|a|an|its|all|no|each|these) [a-z]+s? of (?:a|an|the|its|their|this|that|all|each|another|one|these|those|which|whose|clusterrun|runs|tasks|hosts|processes)\b`)},
	{"of, and of again", "make two sentences of it", regexp.MustCompile(`\bof (?:\w+ ){1,5}of\b`)},
	{"whose", "use 'with', or two sentences", regexp.MustCompile(`\bwhose\b`)},
	{"for which, in which", "use 'that', or a verb", regexp.MustCompile(`\b(?:for|after|at|in|by|from|with|to|on|of|until|below|under) which\b`)},
	{"ends", "processes exit, calls return, contexts are canceled, runs finish", regexp.MustCompile(`\b(?:ends|ended|ending)\b|\bto end\b`)},
	{"has", "contains, holds, provides, lists", regexp.MustCompile(`\b(?:has|have) (?:the|all|a|an|its|their|only|what|no|none|one|some|more|other|another|of)\b`)},
	{"negated noun", "negate the verb: 'is not in a call', not 'is in no call'",
		regexp.MustCompile(`\b(?:takes?|needs?|gives?|names?|gets?|keeps?|writes?|starts?|holds?|loses?|costs?|cuts?|waits? for|opens?|knows?|makes?|leaves?|sends?|shows?|uses?|has|have|had|sees?|finds?|counts?|wants?|allows?|ends?|says?|serves?|returns|with|by|of|for|to|in) (?:no [a-z]+|none)\b`)},
	{"others, the other", "repeat the noun", regexp.MustCompile(`\b(?:others|another's|the others')[ ,.;:)]|\bthe other[,.;:)]`)},
	{"then, there, too at the end", "drop it, or move it before the verb", regexp.MustCompile(`\b(?:then|there|here|too|again)[.;:](?:\s|$)`)},
	{"at once", "say 'immediately' or 'at a time'", regexp.MustCompile(`\bat once\b`)},
	{"of its own", "say 'its own'", regexp.MustCompile(`\bof (?:its|their|our|your) own\b|\bof (?:yours|mine)\b|\bby (?:itself|themselves)\b|\b\w+ of (?:clusterrun|torchrun|Temporal|the \w+)'s\b`)},
	{"a text", "say 'string', 'message' or 'word'", regexp.MustCompile(`\ba text\b|\btexts\b|\bas text\b|\bthe text (?:of|that|is)\b`)},
	{"programs that say and know", "report, record, notify, receive, require", regexp.MustCompile(`\b(?:says|said|tells|knows|knew|learns|wants|asks|noted|notes that)\b`)},
	{"colon splice", "make it two sentences, or say 'because' or 'so'",
		regexp.MustCompile("[a-z\\])`]: [a-z][^.;:]{12,}\\b(?:is|are|was|were|has|have|can|may|must|would|will|do|does|gets?|needs?|takes?|waits?|costs?)\\b")},
	{"as X does", "say 'like X'", regexp.MustCompile(`\bas (?:with|for|in|on|by|of|at) (?:a|an|the|other|torchrun|mpirun|srun|ssh|usual|before|clusterrun|[a-z]+run)\b|\bas [a-z]+ (?:does|do|did|is|are|has|have)\b`)},
	{"afterthought", "move 'also' or 'only' before the verb", regexp.MustCompile(`, (?:also|and also|even|and only|only) (?:of|for|in|with|by|if|when|on|to|from|after|a|an|the)\b`)},
	{"below, beyond, in front of", "say 'in', 'outside', 'before'", regexp.MustCompile(`\b(?:in front of|beyond|below|in between)\b`)},
	{"begin, room, take part", "say 'start', 'capacity', 'join'", regexp.MustCompile(`\b(?:begins?|began|begun|beginning|takes? part|room)\b`)},
	{"is the time after which", "say 'is the maximum delay', 'limits'", regexp.MustCompile(`\b(?:is|are) (?:the (?:longest |shortest |least |most )?(?:time|delay|number|most|least|longest)[^.]{0,40}?(?:which|that|may))\b`)},
	{"that many, so long", "name the value", regexp.MustCompile(`\b(?:that|so) (?:many|long|much|large|often|few)\b`)},
}

// counted are nouns that a genitive after them makes no chain of: 'the number of tasks'.
var counted = regexp.MustCompile(`^\w+ (?:number|list|set|kind|type|name|value|part|rest|end|start|beginning|time|size|length|lot|copy|sequence|slice|result|use|form|case|way|most|one|field|sum|order)s? of\b`)

// A passage is a comment, a message or a paragraph, with its location.
type passage struct {
	area, file string
	line, last int
	text       string
}

func (p passage) words() int { return len(strings.Fields(p.text)) }

func (p passage) lines() (all []int) {
	for line := p.line; line <= p.last; line++ {
		all = append(all, line)
	}
	return all
}

// hits returns a passage's phrases to fix, by kind.
func (p passage) hits() (found []string) {
	for _, s := range stumbles {
		for _, hit := range s.phrase.FindAllString(p.text, -1) {
			if counted.MatchString(hit) {
				continue
			}
			found = append(found, fmt.Sprintf("%s:%d: %q: %s: %s", p.file, p.line, strings.TrimSpace(hit), s.name, s.instead))
		}
	}
	return found
}

// TestWords holds each area to its ceiling of stumbling phrases per 1,000 words. Ceilings only
// fall: after fixing phrases, `go test ./tests -run TestWords -lower` writes the new ones.
func TestWords(t *testing.T) {
	onlyInLint(t)
	words, hits := map[string]int{}, map[string]int{}
	for _, p := range passages(t) {
		words[p.area] += p.words()
		hits[p.area] += len(p.hits())
	}
	ceilings := readCeilings(t)
	for area := range words {
		score := perThousand(hits[area], words[area])
		assert.LessOrEqual(t, score, ceilings[area], "%s has more phrases to be read twice than before; TestAddedWords lists them", area)
		ceilings[area] = min(score, ceilings[area])
	}
	if *updateWords {
		writeCeilings(t, ceilings)
	}
}

// TestAddedWords holds what was written since the last change of the ceilings to the budget.
func TestAddedWords(t *testing.T) {
	onlyInLint(t)
	base := lastCeilings(t)
	added := addedLines(t, base)
	words, found := 0, []string{}
	for _, p := range passages(t) {
		if slices.ContainsFunc(p.lines(), func(line int) bool { return added[p.file][line] }) {
			words += p.words()
			found = append(found, p.hits()...)
		}
	}
	if len(found) > 0 && words > 200 {
		assert.LessOrEqual(t, perThousand(len(found), words), float64(addedBudget), "%d words were added, with:\n%s", words, strings.Join(found, "\n"))
	}
}

// TestSubjects holds the commits since then to "package: imperative", or "package, package: …".
func TestSubjects(t *testing.T) {
	onlyInLint(t)
	subject := regexp.MustCompile(`^[a-z0-9/.-]+(?:, ?[a-z0-9/.-]+)*: [a-z].*[^.]$`)
	for line := range strings.Lines(git(t, "log", "--no-merges", "--format=%s", lastCeilings(t)+"..HEAD")) {
		line = strings.TrimSpace(line)
		assert.Regexp(t, subject, line)
		assert.LessOrEqual(t, len(line), 72, line)
	}
}

// onlyInLint skips a test in `make test`, because `make lint` checks the prose.
func onlyInLint(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make lint runs it")
	}
}

// lastCeilings returns the last commit that changed the ceilings.
func lastCeilings(t *testing.T) string {
	t.Helper()
	commit := strings.TrimSpace(git(t, "log", "-1", "--format=%H", "--", "tests/"+ceilingsFile))
	if commit == "" {
		t.Skip("the ceilings are not committed yet")
	}
	return commit
}

func perThousand(hits, words int) float64 {
	return float64(hits*10000/max(words, 1)) / 10
}

const ceilingsFile = "testdata/words.txt"

func readCeilings(t *testing.T) map[string]float64 {
	t.Helper()
	data, err := os.ReadFile(ceilingsFile)
	require.NoError(t, err)
	ceilings := map[string]float64{}
	for line := range strings.Lines(string(data)) {
		if area, ceiling, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			ceilings[area], err = strconv.ParseFloat(strings.TrimSpace(ceiling), 64)
			require.NoError(t, err, line)
		}
	}
	return ceilings
}

func writeCeilings(t *testing.T, ceilings map[string]float64) {
	t.Helper()
	text := "# Stumbling phrases per 1,000 words, at most; see words_test.go. These only fall.\n"
	for _, area := range slices.Sorted(maps.Keys(ceilings)) {
		text += fmt.Sprintf("%s %.1f\n", area, ceilings[area])
	}
	require.NoError(t, os.WriteFile(ceilingsFile, []byte(text), 0o600))
}

// addedLines returns the lines added since a commit, by file.
func addedLines(t *testing.T, base string) map[string]map[int]bool {
	t.Helper()
	added := map[string]map[int]bool{}
	hunk := regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)
	file := ""
	for line := range strings.Lines(git(t, "diff", "-U0", "-M", "--no-color", base)) {
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			file = strings.TrimSpace(name)
			added[file] = map[int]bool{}
		} else if m := hunk.FindStringSubmatch(line); m != nil && file != "" {
			from, _ := strconv.Atoi(m[1])
			n := 1
			if m[2] != "" {
				n, _ = strconv.Atoi(m[2])
			}
			for i := range n {
				added[file][from+i] = true
			}
		}
	}
	return added
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("no Git history here: %v", err)
	}
	return string(out)
}

// passages returns the tree's prose: Go comments and messages, Python comments and docstrings,
// and paragraphs of pages.
func passages(t *testing.T) (all []passage) {
	t.Helper()
	for name := range strings.Lines(git(t, "ls-files")) {
		name = strings.TrimSpace(name)
		if strings.Contains(name, "/without/") || strings.Contains(name, "licenses") || name == "tests/words_test.go" || name == "tests/behaviours.md" {
			continue
		}
		data, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue // removed, and not committed
		}
		require.NoError(t, err)
		switch filepath.Ext(name) {
		case ".go":
			all = append(all, ofGo(name, data)...)
		case ".md", ".txt":
			if filepath.Ext(name) == ".txt" && !strings.HasPrefix(name, "starter/help/") {
				continue
			}
			all = append(all, ofMarkdown(name, string(data))...)
		case ".py":
			all = append(all, ofPython(name, string(data))...)
		}
	}
	require.NotEmpty(t, all)
	return all
}

func areaOf(name string) string {
	top, _, _ := strings.Cut(name, "/")
	switch {
	case strings.HasSuffix(name, "_test.go") || top == "tests":
		return "tests"
	case strings.HasPrefix(name, "starter/help/"):
		return "help"
	case strings.HasSuffix(name, ".md"):
		return "pages"
	case strings.HasSuffix(name, ".py"):
		return "python"
	}
	return top
}

// ofGo joins a comment's lines. A message is a string of three words or more.
func ofGo(name string, data []byte) (all []passage) {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile(name, -1, len(data))
	s.Init(file, data, nil, scanner.ScanComments)
	area, last := areaOf(name), -1
	for {
		pos, tok, text := s.Scan()
		line := file.Line(pos)
		switch tok {
		case token.EOF:
			return all
		case token.COMMENT:
			if strings.HasPrefix(text, "//go:") || strings.HasPrefix(text, "//nolint") || strings.HasPrefix(text, "/*") {
				continue
			}
			text = strings.TrimSpace(strings.TrimPrefix(text, "//"))
			if n := len(all) - 1; n >= 0 && last == line-1 && text != "" {
				all[n].text, all[n].last = all[n].text+" "+text, line
			} else {
				all = append(all, passage{area, name, line, line, text})
			}
			last = line
		case token.STRING:
			last = -1
			text = strings.Trim(text, "\"`")
			if area != "tests" && len(strings.Fields(text)) >= 3 {
				all = append(all, passage{"messages", name, line, line, text})
			}
		default:
			if text != "\n" {
				last = -1
			}
		}
	}
}

func ofMarkdown(name, data string) (all []passage) {
	code, at := false, -1
	lines := bufio.NewScanner(strings.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for line := 1; lines.Scan(); line++ {
		text := strings.TrimSpace(lines.Text())
		fence := strings.HasPrefix(text, "```")
		code = code != fence
		switch {
		case fence || code || text == "":
			at = -1
		case at < 0:
			all = append(all, passage{areaOf(name), name, line, line, text})
			at = len(all) - 1
		default:
			all[at].text, all[at].last = all[at].text+" "+text, line
		}
	}
	return all
}

func ofPython(name, data string) (all []passage) {
	doc := false
	for i, text := range strings.Split(data, "\n") {
		text = strings.TrimSpace(text)
		quotes := strings.Count(text, `"""`)
		if comment, ok := strings.CutPrefix(text, "# "); ok && !doc {
			all = append(all, passage{areaOf(name), name, i + 1, i + 1, comment})
		} else if (doc || quotes > 0) && text != "" {
			all = append(all, passage{areaOf(name), name, i + 1, i + 1, strings.Trim(text, `"`)})
		}
		doc = doc != (quotes%2 == 1)
	}
	return all
}
