package tasklog

// Stream names one of a process's two outputs.
type Stream struct {
	Rank    int  `json:"rank"`
	Attempt int  `json:"attempt"`
	Stderr  bool `json:"stderr,omitempty"`
}

// Chunk is a piece of a stream. It contains whole lines, except that the last line may be
// unfinished and continue in the next chunk.
type Chunk struct {
	Stream
	// Data is never empty. It is valid only until the sink returns.
	Data []byte
	// Start reports whether Data starts a line.
	Start bool
	// Offset is the offset of Data in its file.
	Offset int64
}

// End reports whether Data ends a line.
func (c Chunk) End() bool { return c.Data[len(c.Data)-1] == '\n' }
