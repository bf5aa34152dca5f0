package supervise

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	memoryEvery = 10 * time.Second
	// memorySlack limits the unused bytes that the heap may keep.
	memorySlack = 4 << 20
)

// ReturnMemory returns memory that is unused after a burst to the system, until ctx is done. A host
// worker idles for hours next to programs that need all memory, whereas Go's own schedule is
// designed for programs that remain busy.
func ReturnMemory(ctx context.Context) {
	ticker := time.NewTicker(memoryEvery)
	defer ticker.Stop()
	sample := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	var seen uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(sample)
		// Memory can have been freed only by a collection since the last time.
		if sample[0].Value.Uint64()+sample[1].Value.Uint64() > memorySlack && sample[2].Value.Uint64() != seen {
			debug.FreeOSMemory()
			metrics.Read(sample[2:])
		}
		seen = sample[2].Value.Uint64()
	}
}
