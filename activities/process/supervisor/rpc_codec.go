package supervisor

import (
	"bufio"
	"encoding/gob"
	"io"
	"net/rpc"
)

// orderedCodec is net/rpc's gob codec, which it does not export, with one addition:
// received is called with the arguments of each request before the next is read.
// net/rpc itself runs every request in a goroutine of its own, in no order.
type orderedCodec struct {
	conn     io.ReadWriteCloser
	dec      *gob.Decoder
	enc      *gob.Encoder
	buf      *bufio.Writer
	received func(args any)
}

func newOrderedCodec(conn io.ReadWriteCloser, received func(args any)) *orderedCodec {
	buf := bufio.NewWriter(conn)
	return &orderedCodec{conn: conn, dec: gob.NewDecoder(conn), enc: gob.NewEncoder(buf), buf: buf, received: received}
}

func (c *orderedCodec) ReadRequestHeader(r *rpc.Request) error { return c.dec.Decode(r) }

func (c *orderedCodec) ReadRequestBody(args any) error {
	if err := c.dec.Decode(args); err != nil {
		return err
	}
	c.received(args)
	return nil
}

// WriteResponse is only called by one goroutine at a time.
func (c *orderedCodec) WriteResponse(r *rpc.Response, reply any) error {
	err := c.enc.Encode(r)
	if err == nil {
		err = c.enc.Encode(reply)
	}
	if err == nil {
		return c.buf.Flush()
	}
	// A failed encoding may be half written, so the connection cannot continue.
	_ = c.Close()
	return err
}

func (c *orderedCodec) Close() error { return c.conn.Close() }
