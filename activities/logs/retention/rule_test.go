package retention

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var (
	now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	old = now.AddDate(0, 0, -40)
)

func TestChoose(t *testing.T) {
	rule := Rule{Before: now.AddDate(0, 0, -30)}
	for _, c := range []struct {
		name string
		rule Rule
		is   Facts
		want Reason
	}{
		{"it has ended, as is noted", rule, Facts{Noted: true, Ended: old}, ""},
		{"it has ended, as the server says", rule, Facts{Server: Closed, Ended: old}, ""},
		{"its state directory went with it", rule, Facts{Gone: true, Ended: old}, ""},
		{"it ended yesterday", rule, Facts{Noted: true, Ended: now.AddDate(0, 0, -1)}, Wanted},
		{"it ended at the very time", rule, Facts{Noted: true, Ended: rule.Before}, Wanted},
		{"nobody says that it has ended", rule, Facts{Ended: old}, Unsettled},
		{"the server says that it is open", rule, Facts{Server: Open, Ended: old}, Lives},
		{"the server knows better than a note", rule, Facts{Server: Open, Noted: true, Ended: old}, Lives},
		{"the server knows better than a directory", rule, Facts{Server: Open, Gone: true, Ended: old}, Lives},
		{"its host worker has not done with it", rule, Facts{Server: Closed, Noted: true, Held: true, Ended: old}, Lives},
		{"its host worker is away and the server is silent", rule, Facts{Noted: true, Held: true, Idle: true, Ended: old}, Lives},
		{"its host worker is away and the run is closed", rule, Facts{Server: Closed, Held: true, Idle: true, Ended: old}, ""},
		{"its host worker is away and the run is open", rule, Facts{Server: Open, Held: true, Idle: true, Ended: old}, Lives},
		{"no age is old", Rule{}, Facts{Noted: true, Ended: old}, Wanted},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, []Reason{c.want}, c.rule.Choose([]Facts{c.is})) })
	}
}

// The runs that ended first are removed until the rest is small enough. Runs that may not be
// removed also count.
func TestChooseBySize(t *testing.T) {
	day := func(n int, bytes int64) Facts { return Facts{Noted: true, Ended: now.AddDate(0, 0, -n), Bytes: bytes} }
	lives := Facts{Held: true, Bytes: 80}
	runs := []Facts{day(1, 30), day(3, 30), lives, day(2, 30), day(8, 0)}
	for _, c := range []struct {
		most int64
		want []Reason
	}{
		{170, []Reason{Wanted, Wanted, Lives, Wanted, Wanted}},
		{169, []Reason{Wanted, "", Lives, Wanted, Wanted}},
		{110, []Reason{Wanted, "", Lives, "", Wanted}},
		{1, []Reason{"", "", Lives, "", Wanted}},
		{0, []Reason{Wanted, Wanted, Lives, Wanted, Wanted}},
	} {
		assert.Equal(t, c.want, Rule{MaxBytes: c.most}.Choose(runs), "%d", c.most)
	}
	// Runs that are too old are removed first, which frees space for other runs.
	rule := Rule{Before: now.Add(-60 * time.Hour), MaxBytes: 140}
	assert.Equal(t, []Reason{Wanted, "", Lives, Wanted, ""}, rule.Choose(runs))
}
