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

// addedBudget limits the stumbling phrases that a change may add, per 1,000 words. Go's standard
// library has 1.2.
const addedBudget = 3

// A stumble is a kind of phrase that is grammatical but takes a second reading.
type stumble struct {
	name, instead string
	phrase        *regexp.Regexp
}

// stumbles are searched in comments, messages and pages.
var stumbles = []stumble{
	{"clause as subject", "name the thing: 'a run that is queued', not 'what waits'",
		regexp.MustCompile(`(?:^|[.:;] )(?:[Ww]hat|[Ww]ho|[Ww]hoever|[Ww]hatever) [a-z][^.?!:;]{2,80} (?:is|are|has|have|does|gets|goes|ends|stays|may|must|counts|needs|waits)\b[^.?;:]*[.;:,]`)},
	{"definition by a clause", "use a noun: 'the delay before', not 'is how long'",
		regexp.MustCompile(`\b(?:is|are) (?:what|whose|when|where|who|until when|how(?: long| many| much| often| far)?)\b`)},
	{"whoever, whatever", "say 'any', 'the caller', 'the process that'",
		regexp.MustCompile(`\b[Ww](?:hoever|hatever|hichever|herever)\b|\b[Hh]owever (?:long|late|often|many|much|it|they)\b`)},
	{"there is something to do", "use a verb: 'nothing is read', not 'there is nothing to read'",
		regexp.MustCompile(`\b[Tt]here (?:is|are|was|were) (?:[a-z]+ ){0,3}to [a-z]+`)},
	{"is no, is none", "say 'is not a' or 'has no'",
		regexp.MustCompile(`\bit (?:is|was) no (?:[a-km-z]|l[^o])[a-z]*|\b(?:is|are) none\b`)},
	{"note after a colon", "write 'X is nil if', not 'nil: '",
		regexp.MustCompile(`(?:^|[ ;,.(])(?:[Ee]mpty|[Nn]one|[Nn]il|[Zz]ero|0): [a-z]`)},
	{"that of, those of", "repeat the noun",
		regexp.MustCompile(`\b(?:that|those) of\b|\bof (?:ours|theirs)\b`)},
	{"has it done", "say who does it: 'X starts Y', not 'X has Y started'",
		regexp.MustCompile(`\b(?:has|have|had) (?:(?:a|an|the|its|their|each|every|all) )?[a-z]+ (?:be|do|run|go|stay|wait|start|end|call|execute|answer|serve|write|listen|look|take|keep|noticed|dropped|stopped|started|moved)\b`)},
	{"is told, hears of", "say what is sent or known",
		regexp.MustCompile(`\b(?:is|are|was|were|be|been) told\b|\b(?:hears?|heard) of\b`)},
	{"goes on", "say 'continues'",
		regexp.MustCompile(`\b(?:go|goes|went|going|gone) on\b`)},
	{"nobody, somebody for programs", "name the program, or say 'no process', 'no one'",
		regexp.MustCompile(`\b(?:[Nn]obody|[Ss]omebody|[Ee]verybody)\b`)},
	{"where for if", "say 'if' or 'when'",
		regexp.MustCompile(`(?:^|[,;:.] )[Ww]here (?:a|an|the|it|that|this|no|there|they|not|so|any)\b`)},
	{"and not", "say 'not', or make a sentence of it",
		regexp.MustCompile(`\band not\b`)},
	{"beside", "say 'as well as', 'except' or 'next to'",
		regexp.MustCompile(`\bbesides?\b`)},
	{"anew, meanwhile, alone", "say 'again', 'during that time', 'only'",
		regexp.MustCompile(`\b(?:anew|meanwhile|alone)\b`)},
	{"that one, such a one", "repeat the noun",
		regexp.MustCompile(`\b(?:another|that|this|such a) one\b|\bthe one (?:that|of|by|with|in)\b`)},
	{"in place of, as far as", "say 'instead of', 'if', 'as much as'",
		regexp.MustCompile(`\bin (?:the )?place of\b|\bfor want of\b|\b(?:as|so) far as\b`)},
	{"any more", "say 'no longer'",
		regexp.MustCompile(`\bany more\b`)},
	{"gets on, does not get on", "say 'makes progress', 'is stuck'",
		regexp.MustCompile(`\b(?:get|gets|got|getting) on\b`)},
}

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
			found = append(found, fmt.Sprintf("%s:%d: %q: %s: %s", p.file, p.line, strings.TrimSpace(hit), s.name, s.instead))
		}
	}
	return found
}

// TestWords holds each area to its ceiling of stumbling phrases per 1,000 words. Ceilings only
// fall: after fixing phrases, `go test ./tests -run TestWords -lower` writes the new ones.
func TestWords(t *testing.T) {
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
	subject := regexp.MustCompile(`^[a-z0-9/.-]+(?:, ?[a-z0-9/.-]+)*: [a-z].*[^.]$`)
	for line := range strings.Lines(git(t, "log", "--no-merges", "--format=%s", lastCeilings(t)+"..HEAD")) {
		line = strings.TrimSpace(line)
		assert.Regexp(t, subject, line)
		assert.LessOrEqual(t, len(line), 72, line)
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
