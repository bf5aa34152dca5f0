package series

import (
	"encoding/binary"
	"math"
	"time"
)

// RecordSize is the size of a file's records, in bytes.
const RecordSize = 8 + 10*4

// Append appends a point's record to b: its start in milliseconds since 1970 and its values as
// 32-bit floating-point numbers, all little-endian.
func Append(b []byte, p Point) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(p.From.UnixMilli()))
	for _, v := range values(&p) {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(*v)))
	}
	return b
}

// Parse returns the points of records, in time order. It skips records that are incomplete or
// contain impossible values, since another program may have written them.
func Parse(b []byte) []Point {
	points := make([]Point, 0, len(b)/RecordSize)
	for ; len(b) >= RecordSize; b = b[RecordSize:] {
		p := Point{From: time.UnixMilli(int64(binary.LittleEndian.Uint64(b))).UTC()}
		valid := p.From.Unix() > 0 && p.From.Unix() < lastSecond
		for i, v := range values(&p) {
			*v = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[8+4*i:])))
			valid = valid && *v >= 0 && *v <= maxValue
		}
		if valid && p.Seconds > 0 && p.Seconds <= maxSeconds {
			points = append(points, p)
		}
	}
	return sorted(points)
}

const (
	// maxValue limits all values. It exceeds the memory of any host, in bytes.
	maxValue = 1 << 60
	// Any two times differ by less than the maximum [time.Duration], since lastSecond is in the
	// year 2106, and maxSeconds is 68 years.
	lastSecond, maxSeconds = 1 << 32, 1 << 31
)

// values returns a point's values in record order.
func values(p *Point) [10]*float64 {
	return [10]*float64{
		&p.Seconds, &p.CPUs, &p.MaxCPUs, &p.GPUs, &p.MaxGPUs, &p.RSSBytes, &p.GPUMemoryBytes, &p.Steps, &p.StepSeconds, &p.MaxStepSeconds,
	}
}
