package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/temporal"
	"github.com/workflows-engine/workflows-engine/graph/temporal/sidepg"
	"github.com/workflows-engine/workflows-engine/internal/buildstamp"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// service is the Temporal service that the flags and variables lead to.
type service struct {
	env   config.Environment
	set   *pflag.FlagSet
	lanes []string
	// side keeps large values and journals, nil without one; converter reads and writes payloads. options sets both.
	side temporal.SideStore
	// sealed is set if payloads are encrypted.
	sealed    bool
	converter converter.DataConverter
}

// setting is a flag of the service. The variables are those of Temporal's own tools.
type setting struct{ flag, variable, fallback, help string }

var (
	address    = setting{"temporal-address", "TEMPORAL_ADDRESS", "127.0.0.1:7233", "`address` of the Temporal service"}
	namespace  = setting{"temporal-namespace", "TEMPORAL_NAMESPACE", "default", "`namespace` of the runs"}
	taskQueue  = setting{"temporal-task-queue", "", "awp", "`prefix` of the names of task queues; all processes of the same runs have the same one"}
	keyFile    = setting{"temporal-api-key-file", "", "", "`file` with the API key (or $TEMPORAL_API_KEY, the key itself)"}
	tlsOn      = setting{"temporal-tls", "TEMPORAL_TLS", "", "connect with TLS: true or false; an API key or one of the next files implies it"}
	authority  = setting{"temporal-tls-ca-file", "TEMPORAL_TLS_SERVER_CA_CERT_PATH", "", "`file` with the certificates that the service's is signed by"}
	ownFile    = setting{"temporal-tls-cert-file", "TEMPORAL_TLS_CLIENT_CERT_PATH", "", "`file` with the certificate of this client"}
	ownKeyFile = setting{"temporal-tls-key-file", "TEMPORAL_TLS_CLIENT_KEY_PATH", "", "`file` with its private key"}
	serverName = setting{"temporal-tls-server-name", "TEMPORAL_TLS_SERVER_NAME", "", "`name` in the service's certificate"}
	archive    = setting{"temporal-archive", "", "", "`directory` on this machine for records from before a run continues as new; without it they are given up"}

	sideDir    = setting{"temporal-side-store", "", "", "`directory` for large values and the journals of agents, for processes of one machine"}
	sideFile   = setting{"temporal-side-store-url-file", "", "", "`file` with the address of a PostgreSQL database for them, for several machines"}
	payloadKey = setting{"temporal-payload-key-file", "", "", "`file` with a key of 32 bytes in hex that encrypts payloads"}

	settings = []setting{sideDir, sideFile, payloadKey, address, namespace, taskQueue, keyFile, tlsOn, authority, ownFile, ownKeyFile, serverName, archive}
)

// register adds the flags of the service.
func (s *service) register(set *pflag.FlagSet) config.Place {
	s.set = set
	place := config.Place{Name: func() string { return s.value(address) + ", namespace " + s.value(namespace) }}
	for _, o := range settings {
		var notes []string
		if o.fallback != "" {
			notes = append(notes, "default "+o.fallback)
		}
		if o.variable != "" {
			notes = append(notes, "$"+o.variable)
		}
		help := o.help
		if len(notes) > 0 {
			help += " (" + strings.Join(notes, "; ") + ")"
		}
		set.String(o.flag, "", help)
		place.Flags = append(place.Flags, o.flag)
	}
	set.StringSliceVar(&s.lanes, "temporal-lanes", nil, "`executors` with task queues of their own, as in step:charge, with commas; all processes of the same runs have the same ones")
	return place
}

// value returns the flag if it was given, else the variable, else the default.
func (s *service) value(o setting) string {
	if s.set.Changed(o.flag) {
		return strings.TrimSpace(s.set.Lookup(o.flag).Value.String())
	}
	if o.variable != "" {
		if v := s.env.Variable(o.variable); v != "" {
			return v
		}
	}
	return o.fallback
}

// reachTime bounds the first call to the service.
const reachTime = 5 * time.Second

// options returns how to connect.
func (s *service) options(ctx context.Context, c *config.Config) (client.Options, error) {
	o := client.Options{
		HostPort: s.value(address), Namespace: s.value(namespace), Logger: log.NewStructuredLogger(c.Log), Identity: identity(),
		ConnectionOptions: client.ConnectionOptions{GetSystemInfoTimeout: reachTime},
	}
	key, err := c.Key(keyFile.flag, s.value(keyFile), "TEMPORAL_API_KEY")
	if err != nil {
		return o, err
	}
	if key != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(key)
	}
	if o.ConnectionOptions.TLS, err = s.tls(); err != nil {
		return o, err
	}
	err = s.openSide(ctx, c)
	o.DataConverter = s.converter
	if err == nil && s.sealed {
		o.FailureConverter = temporal.NewFailureConverter(s.converter)
	}
	return o, err
}

// openSide opens the side store, once, and makes the converter of payloads.
func (s *service) openSide(ctx context.Context, c *config.Config) error {
	if s.converter != nil {
		return nil
	}
	dir, file := s.value(sideDir), s.value(sideFile)
	if dir != "" && file != "" {
		return problem.New(problem.UsageError, "--%s and --%s cannot be given together", sideDir.flag, sideFile.flag).WithHint("Choose one of them.")
	}
	text, err := c.Key(payloadKey.flag, s.value(payloadKey), "")
	if err != nil {
		return err
	}
	key, err := hex.DecodeString(text)
	if err != nil || text != "" && len(key) != payloadKeyBytes {
		return problem.New(problem.UsageError, "--%s has no key of %d bytes in hex", payloadKey.flag, payloadKeyBytes).WithHint("Generate one: openssl rand -hex %d.", payloadKeyBytes)
	}
	switch {
	case dir != "":
		side, err := temporal.OpenFileSideStore(dir)
		if err != nil {
			return err
		}
		s.side = side
	case file != "":
		url, err := c.Key(sideFile.flag, file, "")
		if err != nil {
			return err
		}
		side, err := sidepg.Open(ctx, url)
		if err != nil {
			return err
		}
		s.side = side
	}
	s.sealed = len(key) > 0
	s.converter, err = temporal.NewDataConverter(s.side, key)
	return err
}

// payloadKeyBytes is the length of keys of payloads.
const payloadKeyBytes = 32

// tls returns the settings of TLS, nil without it.
func (s *service) tls() (*tls.Config, error) {
	files := [3]string{s.value(authority), s.value(ownFile), s.value(ownKeyFile)}
	name := s.value(serverName)
	switch on := strings.ToLower(s.value(tlsOn)); {
	case on != "" && on != "true" && on != "false" && on != "1" && on != "0":
		return nil, problem.New(problem.UsageError, "invalid value %q for --%s", s.value(tlsOn), tlsOn.flag).WithHint("Write true or false.")
	case (files[1] == "") != (files[2] == ""):
		return nil, problem.New(problem.UsageError, "--%s and --%s need each other", ownFile.flag, ownKeyFile.flag).WithHint("Name both files.")
	case files == [3]string{} && name == "" && on != "true" && on != "1":
		return nil, nil
	}
	t := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}
	if files[0] != "" {
		text, err := os.ReadFile(files[0])
		if err != nil {
			return nil, problem.New(problem.UsageError, "cannot read --%s", authority.flag).WithCause(err).WithHint("Name a file with certificates in PEM.")
		}
		if t.RootCAs = x509.NewCertPool(); !t.RootCAs.AppendCertsFromPEM(text) {
			return nil, problem.New(problem.UsageError, "--%s %s has no certificate", authority.flag, files[0]).WithHint("Name a file with certificates in PEM.")
		}
	}
	if files[1] != "" {
		own, err := tls.LoadX509KeyPair(files[1], files[2])
		if err != nil {
			return nil, problem.New(problem.UsageError, "cannot read --%s and --%s", ownFile.flag, ownKeyFile.flag).WithCause(err).WithHint("Name a certificate and its key in PEM.")
		}
		t.Certificates = []tls.Certificate{own}
	}
	return t, nil
}

// walkMark stands before the walk version in the identity of a process. doctor reads it.
const walkMark = " walk="

// identity names this process to the service.
func identity() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%d@%s %s%s%d", os.Getpid(), cmp.Or(host, "?"), buildstamp.Read().Version, walkMark, machine.WalkVersion)
}

// dial connects to the service now.
func (s *service) dial(ctx context.Context, c *config.Config) (client.Client, error) {
	o, err := s.options(ctx, c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	t, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, s.unreachable(err)
	}
	return t, nil
}

// unreachable is the error of a service that does not answer.
func (s *service) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return problem.New(problem.StoreUnavailable, "the Temporal service at %s does not answer", s.value(address)).WithCause(err).
		WithHint("Check that it runs, the address (--%s), TLS and the API key.", address.flag)
}

// closing closes its client, too.
type closing struct {
	*temporal.Engine
	client client.Client
}

func (e closing) Close() error {
	defer e.client.Close()
	return e.Engine.Close()
}

// engine connects for one command.
func (s *service) engine(ctx context.Context, c *config.Config, o graph.Options) (graph.Engine, error) {
	t, err := s.dial(ctx, c)
	if err != nil {
		return nil, err
	}
	e, err := temporal.New(s.adapt(c, o, t))
	if err != nil {
		t.Close()
		return nil, err
	}
	return closing{e, t}, nil
}

// unlimited is the capacity of a worker without a limit.
const unlimited = 1000

// adapt turns the engine's options into those of the adapter.
func (s *service) adapt(c *config.Config, o graph.Options, t client.Client) temporal.Options {
	to := temporal.Options{
		Client: t, Address: s.value(address), Namespace: s.value(namespace), TaskQueue: s.value(taskQueue), Lanes: s.lanes,
		Queues: o.Queues, MaxConcurrent: o.Capacity, Limits: o.Limits, FairLabel: o.FairLabel,
		Webhooks: o.Webhooks, Deliver: o.Deliver, Glossary: o.Glossary,
		Activities: o.Activities, Delegates: o.Delegates, Workflows: o.Workflows, VerifyDefinition: o.VerifyDefinition,
		DefaultMode: o.DefaultMode, Branches: o.Branches, AllowInterruptInBranch: o.AllowInterruptInBranch,
		MaxVisits: o.MaxVisits, MaxRecords: o.MaxRecords, MaxBytes: o.MaxBytes, MaxPending: o.MaxPending, MinHostTimeout: o.MinHostTimeout,
		Attempts: o.Attempts, MaxDepth: o.MaxDepth, MaxDocumentBytes: o.MaxDocumentBytes, WaitLimit: o.WaitLimit,
		CheckAnswer: o.CheckAnswer, Redaction: o.Redaction, Logger: c.Log, SideStore: s.side, Converter: s.converter,
	}
	if to.MaxConcurrent < 0 {
		to.MaxConcurrent = unlimited
	}
	if dir := s.value(archive); dir != "" {
		to.Archive = temporal.OpenFileArchive(dir)
	}
	return to
}
