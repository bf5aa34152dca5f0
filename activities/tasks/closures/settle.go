package closures

// follow makes the broker wait for the processes that may hold closures from an earlier
// broker.
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

// heard records that a process has reported its closures, or has ended; without a name it
// stands for all processes of the task. After the last awaited process, closures that no
// process has reported count as not held. b.mu must be held.
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

// settle ends the wait for processes of an earlier broker. b.mu must be held.
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
		// Processes that an earlier broker has reported may have ended since.
		b.changed()
	}
	b.dispatch()
}
