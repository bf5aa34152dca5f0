package hostapi

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/tests/must"
)

// members returns n tasks, 40 per host.
func members(n int) Members {
	m := Members{{Type: "chief", Host: "h0", Address: "h0:2222", LocalWorldSize: 1}}
	for i := range n - 1 {
		host := i / 40
		m = append(m, Member{
			Type: "worker", Index: i, Rank: i + 1, Host: fmt.Sprint("h", host), HostIndex: host,
			Address: fmt.Sprintf("10.0.%d.7:%d", host, 20000+i*7%9000), LocalRank: i % 40, LocalWorldSize: 40,
		})
	}
	return m
}

func TestMembersAsJSON(t *testing.T) {
	few, many := members(manyMembers), members(10_000)
	many[17].Address, many[18].Address, many[19].Address = "[fe80::1]:80", "", "nowhere:http"
	many[200].LocalRank = 3
	for _, m := range []Members{nil, few, many} {
		b := must.Get(json.Marshal(Cluster{Members: m}))(t)
		c := must.JSON[Cluster](t, b)
		assert.Equal(t, m, c.Members)
	}
	b := must.Get(json.Marshal(few))(t)
	old := must.Get(json.Marshal([]Member(few)))(t)
	assert.Equal(t, string(old), string(b), "other versions read it")
	b = must.Get(json.Marshal(many))(t)
	assert.Less(t, len(b), 12*len(many), "every host of the run is told it")
}
