// Package connect dials a Temporal server like the temporal CLI: from a profile file and the
// TEMPORAL_* variables, both overridden by explicit values. A client of the user's embedded server
// follows it when it restarts at another address.
package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"github.com/clusterrun/clusterrun/activities/trust/codec"
	"github.com/clusterrun/clusterrun/workers/embedded"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Options select the server. Empty fields leave the choice to the variables and the profile file
// (see the envconfig package of the Temporal SDK).
type Options struct {
	Address    string `json:"address,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Profile    string `json:"profile,omitempty"`
	ConfigFile string `json:"config_file,omitempty"`
	// Embedded is the embedded server's directory if it currently listens at Address. The
	// server may listen elsewhere later. Embedded is empty for any other server.
	Embedded string `json:"embedded,omitempty"`
	// Socket is a Unix socket that leads to the server. If set, only it and the
	// namespace are used, and this machine's variables and profiles are ignored.
	Socket string `json:"socket,omitempty"`
	// Key is the file of the certificate that the server at Address and its clients present to each
	// other. If set, only the namespace is read from profiles and variables. Key is empty for a
	// server that is not embedded.
	Key string `json:"key,omitempty"`
	// CodecKeys is the file of the keys that encrypt payloads and failures; see package codec. If
	// it is empty, they are not encrypted.
	CodecKeys string `json:"codec_keys,omitempty"`
	// APIKeyFile is a file with the API key, instead of TEMPORAL_API_KEY. It is read for each
	// request, so the key may be replaced.
	APIKeyFile string `json:"api_key_file,omitempty"`
	// Identity is the client's name on the server. By default the SDK chooses it.
	Identity string `json:"-"`
	// Metrics receives the SDK's metrics. If it is nil, the SDK does not collect any.
	Metrics client.MetricsHandler `json:"-"`
}

// Client returns the SDK client's options.
func (o Options) Client() (client.Options, error) {
	c, err := o.named()
	if err != nil {
		return client.Options{}, err
	}
	c.Identity, c.MetricsHandler = o.Identity, o.Metrics
	c.ConnectionOptions.DialOptions = append(c.ConnectionOptions.DialOptions,
		grpc.WithChainUnaryInterceptor(sayRefused, pollWhenReady), grpc.WithConnectParams(redial))
	c.DataConverter, c.FailureConverter = codec.Converter, codec.Failures
	if o.CodecKeys != "" {
		keys, err := codec.Open(o.CodecKeys)
		if err != nil {
			return client.Options{}, err
		}
		encode, err := keys.DialOption()
		if err != nil {
			return client.Options{}, err
		}
		c.ConnectionOptions.DialOptions = append(c.ConnectionOptions.DialOptions, encode)
	}
	return c, nil
}

// named returns how to reach the server selected by the options.
func (o Options) named() (c client.Options, err error) {
	if o.Socket != "" {
		return client.Options{HostPort: "unix://" + o.Socket, Namespace: o.Namespace}, nil
	}
	if o.Key != "" {
		c = client.Options{HostPort: o.Address, Namespace: o.Namespace}
		c.ConnectionOptions.TLS, err = embedded.TLS(o.Key)
		return c, err
	}
	p, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{
		ConfigFilePath:    o.ConfigFile,
		ConfigFileProfile: o.Profile,
	})
	if err == nil {
		c, err = p.ToClientOptions(envconfig.ToClientOptionsRequest{})
	}
	if err != nil {
		return c, fmt.Errorf("cannot read the Temporal profile: %w; correct the file, or choose another with --config-file", err)
	}
	if p.Codec != nil && p.Codec.Endpoint != "" && o.CodecKeys == "" {
		return c, fmt.Errorf("a remote codec is configured (%s), but clusterrun does not use remote codecs: pass the keys with --codec-keys or CLUSTERRUN_CODEC_KEYS, or unset TEMPORAL_CODEC_ENDPOINT", p.Codec.Endpoint)
	}
	if file := o.APIKeyFile; file != "" {
		if _, err := readAPIKey(file); err != nil {
			return c, err
		}
		c.Credentials = client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) { return readAPIKey(file) })
		if p.TLS == nil {
			c.ConnectionOptions.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	if o.Address != "" {
		c.HostPort = o.Address
	}
	if o.Namespace != "" {
		c.Namespace = o.Namespace
	}
	if host, _, err := net.SplitHostPort(orDefault(c.HostPort)); err == nil && spec.IsLoopback(host) {
		// On loopback, compression only costs time, on this side and in the server.
		c.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	switch {
	case o.Embedded != "":
		follow(&c, embedded.Home{Dir: o.Embedded})
	case c.ConnectionOptions.TLS != nil && p.TLS != nil:
		c.ConnectionOptions.DialOptions = append(c.ConnectionOptions.DialOptions,
			grpc.WithTransportCredentials(newRotating(c.ConnectionOptions.TLS, func() (*tls.Config, error) {
				now, err := p.ToClientOptions(envconfig.ToClientOptionsRequest{})
				return now.ConnectionOptions.TLS, err
			})))
	}
	return c, nil
}

// HostPort returns the server's address if it is a TCP address.
func (o Options) HostPort() (string, error) {
	c, err := o.Client()
	return orDefault(strings.TrimPrefix(c.HostPort, passthrough)), err
}

// passthrough makes gRPC leave the address to the dialer.
const passthrough = "passthrough:///"

// follow makes each new connection go to the server's current address.
func follow(c *client.Options, home embedded.Home) {
	// Only the server and error messages use this address. The dialer looks the server up in its
	// home.
	c.HostPort = passthrough + c.HostPort
	c.ConnectionOptions.TLS = nil // the dialer adds TLS
	c.ConnectionOptions.DialOptions = append(c.ConnectionOptions.DialOptions,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return home.Dial(ctx) }))
}

// dialBound is the maximum time to make a connection, including the wait for a server that is
// starting.
const dialBound = 10 * time.Second

// Dial connects and checks that the server answers within the timeout, so that a wrong address
// causes one clear error instead of many log lines.
func Dial(ctx context.Context, o Options, logger log.Logger, timeout time.Duration, more ...grpc.DialOption) (client.Client, error) {
	c, err := o.Client()
	if err != nil {
		return nil, err
	}
	address := orDefault(strings.TrimPrefix(c.HostPort, passthrough))
	c.Logger = logger
	c.ConnectionOptions.GetSystemInfoTimeout = timeout
	c.ConnectionOptions.DialOptions = append(c.ConnectionOptions.DialOptions, more...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cl, err := client.DialContext(ctx, c)
	if err != nil {
		return nil, o.unreached(address, errors.Join(err, o.alert(ctx)))
	}
	return cl, nil
}

// Lazy returns a client that connects at its first request.
func Lazy(o Options, logger log.Logger) (client.Client, error) {
	c, err := o.Client()
	if err != nil {
		return nil, err
	}
	c.Logger = logger
	return client.NewLazyClient(c)
}

// Conn connects to the server for a client that sends plain text. TLS is added on this side.
func (o Options) Conn(ctx context.Context) (net.Conn, error) {
	if o.Embedded != "" {
		return embedded.Home{Dir: o.Embedded}.Dial(ctx)
	}
	c, err := o.Client()
	if err != nil {
		return nil, err
	}
	address := orDefault(strings.TrimPrefix(c.HostPort, "dns:///"))
	if c.ConnectionOptions.TLS == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	config := c.ConnectionOptions.TLS.Clone()
	config.NextProtos = []string{"h2"}
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
}

func readAPIKey(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--api-key-file: %w", err)
	}
	key := strings.TrimSpace(string(b))
	if key == "" {
		return "", fmt.Errorf("--api-key-file: %s is empty", file)
	}
	return key, nil
}

func orDefault(address string) string {
	if address == "" {
		return client.DefaultHostPort
	}
	return address
}
