package closures

import "github.com/clusterrun/clusterrun/workflows/closures/closure"

const (
	maxGone     = 1024
	maxSuspects = 4096
	// maxCancelled is more than the number of closures that a host is given at a time.
	maxCancelled = 16384
	// maxDelivered bounds the outcomes that are kept after they were returned, in bytes: a
	// few of the largest leases.
	maxDelivered = 8 * closure.MaxBatchBytes
)

// memory is a set that forgets its oldest elements.
type memory[K comparable] struct {
	most int
	has  map[K]struct{}
	// order has each element of has, in the order of arrival, and also elements that were
	// removed.
	order []K
}

func newMemory[K comparable](most int) memory[K] {
	return memory[K]{most: most, has: map[K]struct{}{}}
}

func (m *memory[K]) add(k K) {
	if m.contains(k) {
		return
	}
	m.has[k] = struct{}{}
	m.order = append(m.order, k)
	for len(m.has) > m.most || len(m.order) > 2*m.most {
		delete(m.has, m.order[0])
		m.order = m.order[1:]
	}
}

func (m *memory[K]) contains(k K) bool {
	_, ok := m.has[k]
	return ok
}

func (m *memory[K]) remove(k K) { delete(m.has, k) }

// delivered has the latest final outcomes that leases have returned. If a lease is lost
// together with its result, the next one names the same closures, and they need not be called
// again.
type delivered struct {
	outcomes map[uint64]closure.Outcome
	order    []uint64
	bytes    int
}

func (d *delivered) add(o closure.Outcome) {
	if d.outcomes == nil {
		d.outcomes = map[uint64]closure.Outcome{}
	}
	if _, again := d.outcomes[o.ID]; again {
		return
	}
	d.outcomes[o.ID] = o
	d.order = append(d.order, o.ID)
	d.bytes += sizeOf(o)
	for d.bytes > maxDelivered {
		oldest := d.order[0]
		d.bytes -= sizeOf(d.outcomes[oldest])
		delete(d.outcomes, oldest)
		d.order = d.order[1:]
	}
}
