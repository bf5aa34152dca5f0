package series

import (
	"encoding/binary"
	"math"
	"time"
)

// RecordSize is the size of a record of a file, in bytes.
const RecordSize = 8 + 10*4

// Append appends the record of a point to b: its beginning in milliseconds since 1970 and its
// values as 32-bit floating-point numbers, all of them little-endian.
func Append(b []byte, p Point) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(p.From.UnixMilli()))
	for _, v := range values(&p) {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(*v)))
	}
	return b
}

// Parse returns the points of records, in the order of time. It leaves out a record that is not
// complete or has impossible values: another program may have written it.
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
	// maxValue bounds all values. It is more than the memory of any host in bytes.
	maxValue = 1 << 60
	// The times of two points differ by less than a [time.Duration] can have: lastSecond is in
	// the year 2106, and maxSeconds is 68 years.
	lastSecond, maxSeconds = 1 << 32, 1 << 31
)

// values returns the values of a point in the order of a record.
func values(p *Point) [10]*float64 {
	return [10]*float64{
		&p.Seconds, &p.CPUs, &p.MaxCPUs, &p.GPUs, &p.MaxGPUs, &p.RSSBytes, &p.GPUMemoryBytes, &p.Steps, &p.StepSeconds, &p.MaxStepSeconds,
	}
}
