package tasklog

// Stream names one of the two outputs of one process of a run.
type Stream struct {
	Rank    int  `json:"rank"`
	Attempt int  `json:"attempt"`
	Stderr  bool `json:"stderr,omitempty"`
}

// Chunk is a piece of a stream: whole lines, except that the last may be unfinished. The next
// chunk of the stream then continues it.
type Chunk struct {
	Stream
	// Data is never empty. It is valid only until the sink returns.
	Data []byte
	// Start reports whether Data begins a line.
	Start bool
	// Offset is the offset of Data in its file.
	Offset int64
}

// End reports whether Data ends a line.
func (c Chunk) End() bool { return c.Data[len(c.Data)-1] == '\n' }
