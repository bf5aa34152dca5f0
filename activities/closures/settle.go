package closures

// follow has the broker wait for the processes that one before it may have given closures.
func (b *Broker) follow(earlier map[string][]string) {
	for task, names := range earlier {
		if len(names) == 0 {
			b.awaited[processKey{task, ""}] = true
		}
		for _, name := range names {
			b.awaited[processKey{task, name}] = true
		}
	}
}

// heard says that a process has told what it has, or has ended; without a name: all of its
// task. After the last that is awaited, what nobody has told of is with nobody. b.mu must be
// held.
func (b *Broker) heard(key processKey) {
	if len(b.awaited) == 0 {
		return
	}
	for k := range b.awaited {
		switch {
		case k == key:
		case k.task == key.task && key.name == "":
			b.gone.add(k)
		default:
			continue
		}
		delete(b.awaited, k)
	}
	if len(b.awaited) == 0 {
		b.settle()
	}
}

// settle ends the time in which processes of an earlier broker are waited for. b.mu must be
// held.
func (b *Broker) settle() {
	if b.settled || b.isClosed() {
		return
	}
	b.settled = true
	b.settling.Stop()
	b.endDoomed()
	late := b.reporting != nil && b.reporting.Stop()
	if late {
		b.reporting = nil
	}
	if late || !b.told {
		// Those that an earlier broker has reported may have ended since.
		b.changed()
	}
	b.dispatch()
}
