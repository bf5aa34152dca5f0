package report

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// awaited is the answer of wait --for.
type awaited struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id,omitempty"`
	Open        bool   `json:"open"`
	// Facts are the new ones. The list is empty after a timeout.
	Facts []outcome.Fact `json:"facts"`
	// Verdict and ExitCode are set once the run has ended.
	Verdict  spec.Verdict `json:"verdict,omitempty"`
	ExitCode *int         `json:"exit_code,omitempty"`
	// Cursor represents all reported facts that are still true.
	Cursor string `json:"cursor"`
}

// forOptions holds wait's flags to wait for the next fact.
type forOptions struct {
	kinds   []string
	timeout cli.Duration
	since   string
}

// check refuses invalid flags. It returns the cursor's marks.
func (o *forOptions) check() (marks, error) {
	for _, kind := range o.kinds {
		if !slices.Contains(outcome.Kinds, outcome.Kind(kind)) {
			all := list.Of(outcome.Kinds, func(k outcome.Kind) string { return string(k) })
			return nil, cli.Usagef("--for %s: unknown kind of fact; use some of %s", kind, strings.Join(all, ", "))
		}
	}
	known, err := parseCursor(o.since)
	if err != nil {
		return nil, cli.Usagef("--since %s: not a cursor; use one from an earlier answer of wait --for", o.since)
	}
	return known, nil
}

// errFound ends a watch because a fact was found.
var errFound = errors.New("a fact was found")

// awaitFact waits until one of the facts is new, and prints it. The end of the run is always
// new.
func awaitFact(ctx context.Context, a *cli.App, r *starter.Run, o *forOptions, known marks) error {
	answer := awaited{RunID: r.ID, Open: true, Facts: []outcome.Fact{}, Cursor: o.since}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(o.timeout))
		defer cancel()
	}
	_, err := Watch(ctx, r, func(s *starter.Status) error {
		if !s.Open {
			clear(known)
		}
		fresh := known.news(s, func(f outcome.Fact) bool {
			return f.Kind == outcome.FactDone || slices.Contains(o.kinds, string(f.Kind))
		})
		answer.ExecutionID, answer.Open, answer.Cursor = s.ExecutionID, s.Open, known.cursor()
		if len(fresh) == 0 {
			return nil
		}
		answer.Facts = fresh
		if answer.Verdict = s.Verdict; s.Result != nil {
			answer.ExitCode = &s.Result.ExitCode
		}
		return errFound
	}, a.SayUnreachable)
	switch {
	case errors.Is(err, errFound):
		return a.PrintJSONLine(answer)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		if err := a.PrintJSONLine(answer); err != nil {
			return err
		}
		return &cli.ExitError{Code: exitcode.Timeout}
	}
	return err
}

// marks holds the hashes of the marks of a run's reported facts.
type marks map[uint32]bool

// news returns the facts that are wanted and new, and marks them as reported.
func (m marks) news(s *starter.Status, wanted func(outcome.Fact) bool) []outcome.Fact {
	facts := slices.DeleteFunc(slices.Clone(s.Facts), func(f outcome.Fact) bool { return !wanted(f) })
	fresh := outcome.News(facts, func(mark string) bool { return m[hash(mark)] })
	if !s.Unanswered { // otherwise the facts about its tasks are unknown
		m.keep(s.Facts)
	}
	m.add(fresh)
	return fresh
}

func hash(mark string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(mark)) // it never fails
	return h.Sum32()
}

func (m marks) add(facts []outcome.Fact) {
	for _, f := range facts {
		for _, mark := range f.Marks() {
			m[hash(mark)] = true
		}
	}
}

// keep drops the marks of facts that are no longer true. If such a fact recurs, it counts as new.
func (m marks) keep(facts []outcome.Fact) {
	now := marks{}
	now.add(facts)
	maps.DeleteFunc(m, func(mark uint32, _ bool) bool { return !now[mark] })
}

// cursor encodes the marks as a string.
func (m marks) cursor() string {
	var b []byte
	for _, mark := range slices.Sorted(maps.Keys(m)) {
		b = binary.BigEndian.AppendUint32(b, mark)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(text string) (marks, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b)%4 != 0 {
		return nil, errors.Join(err, errors.New("bad length"))
	}
	m := marks{}
	for ; len(b) > 0; b = b[4:] {
		m[binary.BigEndian.Uint32(b)] = true
	}
	return m, nil
}
