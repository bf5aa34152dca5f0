package hostapi

import (
	"bytes"
	"encoding/json"
	"net"
	"strconv"
)

// Members are a cluster's tasks, in rank order. Each host in a run receives all members, so a large
// run's JSON uses rows.
type Members []Member

// More than manyMembers members are encoded as rows. Host workers of v0.5.0 cannot decode rows.
const manyMembers = 250

// row is a sequence of same-type members on one host, with consecutive indices and ranks, and
// listed ports.
type row struct {
	Member
	Ports []int `json:"ports"`
}

// MarshalJSON implements [json.Marshaler].
func (m Members) MarshalJSON() ([]byte, error) {
	if len(m) <= manyMembers {
		return json.Marshal([]Member(m))
	}
	rows := []row{}
	for _, member := range m {
		next, port := splitPort(member)
		if n := len(rows); n > 0 && port > 0 && rows[n-1].at(len(rows[n-1].Ports)) == next {
			rows[n-1].Ports = append(rows[n-1].Ports, port)
			continue
		}
		r := row{Member: next}
		if port > 0 {
			r.Ports = []int{port}
		}
		rows = append(rows, r)
	}
	return json.Marshal(struct {
		Rows []row `json:"rows"`
	}{rows})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (m *Members) UnmarshalJSON(b []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		return json.Unmarshal(b, (*[]Member)(m))
	}
	var in struct{ Rows []row }
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*m = nil
	for _, r := range in.Rows {
		if len(r.Ports) == 0 {
			*m = append(*m, r.Member)
		}
		for i, port := range r.Ports {
			member := r.at(i)
			member.Address = net.JoinHostPort(member.Address, strconv.Itoa(port))
			*m = append(*m, member)
		}
	}
	return nil
}

// at returns the ith member of a row, without the port in its address.
func (r row) at(i int) Member {
	m := r.Member
	m.Index, m.Rank, m.LocalRank = m.Index+i, m.Rank+i, m.LocalRank+i
	return m
}

// splitPort returns a member without the port in its address, and the port. If the address cannot
// be split, it returns the unchanged member and 0.
func splitPort(m Member) (Member, int) {
	host, text, err := net.SplitHostPort(m.Address)
	port, numberErr := strconv.Atoi(text)
	if err != nil || numberErr != nil || port <= 0 || net.JoinHostPort(host, strconv.Itoa(port)) != m.Address {
		return m, 0
	}
	m.Address = host
	return m, port
}
