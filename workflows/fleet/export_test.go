package fleet

// Queue returns the waiting runs in order.
func (m *Machine) Queue() []Waiting { return m.QueueAfter(0, len(m.waiting)) }
