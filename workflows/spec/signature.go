package spec

// Signature is an SSH signature of a run, or of a request to one. It is made last: what
// changes afterwards makes it worthless.
type Signature struct {
	// Expires is the time, as in RFC 3339, after which no host takes what was signed for the
	// first time.
	Expires string `json:"expires"`
	// Size is the number of tasks that were signed, of which an elastic run may have fewer.
	// 0: as many as there are.
	Size int `json:"size,omitempty"`
	// SSH is the signature as ssh-keygen(1) writes it.
	SSH string `json:"ssh"`
}

// AsSigned returns the spec that a signature is of: with defaults, without the signature, and
// with the tasks of which a generation of an elastic run may have fewer.
func (s *RunSpec) AsSigned() *RunSpec {
	signed := s.WithDefaults()
	signature := signed.Signature
	signed.Signature = nil
	if signature == nil || !signed.IsElastic() || len(signed.Tasks) == 0 || signature.Size <= signed.total() {
		return signed
	}
	return signed.resized(signature.Size)
}

// AsSigned returns the request that its signature is of.
func (r StartTaskRequest) AsSigned() StartTaskRequest {
	r.Signature = nil
	return r
}

// Size returns about how many bytes the request has.
func (r StartTaskRequest) Size() int {
	size := len(r.Task) + len(r.Dir) + stringsBytes(r.Command) + stringsBytes(r.Args) + envBytes(r.Env)
	if r.Signature != nil {
		size += len(r.Signature.Expires) + len(r.Signature.SSH)
	}
	return size
}
